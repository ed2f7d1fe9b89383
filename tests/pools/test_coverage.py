"""When the last slot of a pool is first used, found by driving the pool (case A7)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.pools import original
from poolbisect.pools.coverage import LastSlot, last_slot_use
from poolbisect.pools.interface import SlotHolder
from poolbisect.pools.shipped import STATES, ShippedPools


class LastInFirstOutPool(original.ReqToTokenPool):
    """Hands the most recently freed slot out first."""

    def alloc(self, reqs: Sequence[SlotHolder]) -> list[int] | None:
        self.free_slots.reverse()
        try:
            return super().alloc(reqs)
        finally:
            self.free_slots.reverse()


@pytest.mark.parametrize(
    ("size", "in_flight", "requests", "first"),
    [(256, 64, 200, None), (256, 64, 1319, 256), (16, 16, 200, 16), (16, 4, 200, 16), (1, 1, 1, 1)],
)
def test_first_in_first_out(size: int, in_flight: int, requests: int, first: int | None) -> None:
    pool = ShippedPools("original").make_pool(size, 4, "cpu")
    assert last_slot_use(pool, in_flight, requests) == LastSlot(size, first)


@pytest.mark.parametrize("size", [1, 16, 256])
def test_last_in_first_out_uses_it_with_the_first_request(size: int) -> None:
    pool = LastInFirstOutPool(size, 4, "cpu")
    assert last_slot_use(pool, size, 200) == LastSlot(size, 1)


def test_without_a_padding_row_the_last_slot_is_one_less() -> None:
    pool = ShippedPools("unpadded").make_pool(16, 4, "cpu")
    assert last_slot_use(pool, 4, 200) == LastSlot(15, 16)


@given(
    state=st.sampled_from(sorted(STATES)),
    size=st.integers(1, 40),
    in_flight=st.integers(1, 40),
    requests=st.integers(0, 80),
)
def test_the_last_of_n_slots_is_first_used_by_request_n_at_any_concurrency(
    state: str, size: int, in_flight: int, requests: int
) -> None:
    pool = ShippedPools(state).make_pool(size, 4, "cpu")
    found = last_slot_use(pool, min(in_flight, size), requests)
    assert found.first_request == (size if requests >= size else None)


def test_the_pre_allocation_counts_as_slots() -> None:
    pool = ShippedPools("original").make_pool(8, 4, "cpu", 3)
    assert last_slot_use(pool, 2, 100) == LastSlot(11, 11)
