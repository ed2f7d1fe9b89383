"""The contract probe: rows against the largest slot a pool can hand out (cases A1, A2, A4, A8)."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.memory.spaces import IndexSpace
from poolbisect.pools.interface import RequestPool
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.slots import SlotPool
from poolbisect.probes.contract import BufferContract, contracts

SHIPPED_BUFFERS = ("req_to_hidden_states_pool", "token_table")


class FixedRows:
    """Pools of one state, with fixed rows for their consumers and slots never handed out."""

    def __init__(self, state: str, rows: dict[str, int], never: frozenset[int] = frozenset()):
        self._pools = ShippedPools(state)
        self._rows = rows
        self._never = never

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool:
        pool = cast(SlotPool, self._pools.make_pool(size, max_context_len, device, pre_alloc_size))
        pool.free_slots = [slot for slot in pool.free_slots if slot not in self._never]
        return pool

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        return self._rows[buffer]


def test_a1_two_of_three_consumers_miss_the_padding_row() -> None:
    pools = FixedRows("original", {"A": 8, "B": 8, "C": 9})
    a, b, c = contracts(pools, ["A", "B", "C"], 8)
    for short in (a, b):
        assert (short.missing, short.short_from) == (1, 8)
        assert str(short) == (
            f"{short.buffer}: 8 rows, but request slots run to 8: "
            "short by 1 row from request slot 8 on"
        )
    assert (c.missing, c.short_from) == (0, None)
    assert "short" not in str(c)


@pytest.mark.parametrize(("state", "missing"), [("unpadded", 0), ("original", 1), ("corrected", 0)])
@pytest.mark.parametrize("slots", [1, 8, 64])
def test_the_shipped_states(state: str, missing: int, slots: int) -> None:
    found = contracts(ShippedPools(state), SHIPPED_BUFFERS, slots)
    assert [one.buffer for one in found] == list(SHIPPED_BUFFERS)
    for one in found:
        assert one.missing == missing
        assert one.short_from == (slots if missing else None)
        assert one.last - one.first + 1 == slots


@pytest.mark.parametrize(
    ("state", "first", "last", "short_from"),
    [("unpadded", 0, 0, None), ("original", 1, 1, 1), ("corrected", 1, 1, None)],
)
def test_a4_the_only_request_of_a_pool_of_one_is_on_the_last_slot(
    state: str, first: int, last: int, short_from: int | None
) -> None:
    (one,) = contracts(ShippedPools(state), ["token_table"], 1)
    assert (one.first, one.last, one.short_from) == (first, last, short_from)


def test_a2_a_mapping_sized_by_a_smaller_pool_fails_from_that_size_on() -> None:
    (short,) = contracts(FixedRows("unpadded", {"mapping": 3}), ["mapping"], 8)
    assert (short.first, short.last, short.short_from, short.missing) == (0, 7, 3, 5)
    assert "short by 5 rows from request slot 3 on" in str(short)
    (clean,) = contracts(FixedRows("unpadded", {"mapping": 8}), ["mapping"], 8)
    assert clean.missing == 0


def test_pre_allocated_slots_need_rows_too() -> None:
    (short,) = contracts(ShippedPools("unpadded"), ["token_table"], 32, pre_alloc_size=4)
    assert (short.rows, short.last, short.short_from, short.missing) == (32, 35, 32, 4)


def test_a8_a_pool_that_looks_one_short_but_never_hands_out_its_last_slot_is_clean() -> None:
    pools = FixedRows("original", {"A": 8}, never=frozenset({8}))
    assert pools.make_pool(8, 4, "cpu").req_to_token.shape[0] == 9
    (one,) = contracts(pools, ["A"], 8)
    assert (one.last, one.missing, one.short_from) == (7, 0, None)


@given(first=st.integers(0, 4), slots=st.integers(1, 20), rows=st.integers(0, 30))
def test_short_from_is_the_first_handed_out_index_without_a_row(
    first: int, slots: int, rows: int
) -> None:
    last = first + slots - 1
    contract = BufferContract("A", "request slot", rows, first, last)
    outside = [index for index in range(first, last + 1) if index >= rows]
    assert contract.short_from == (outside[0] if outside else None)
    assert (contract.missing > 0) == bool(outside)
    assert contract.missing == IndexSpace("request slot", first, last).missing_rows(rows)
    assert rows + contract.missing > last
