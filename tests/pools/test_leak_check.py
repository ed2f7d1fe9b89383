"""The idle leak check balances on the faulty pool: it counts slots, and the fault is in rows."""

from __future__ import annotations

from typing import cast

import pytest

from poolbisect.engine.request import Request
from poolbisect.pools.leak_check import leaked_slots
from poolbisect.pools.original import DecodeReqToTokenPool, ReqToTokenPool
from poolbisect.pools.shipped import STATES, ShippedPools
from poolbisect.pools.slots import SlotPool


def make_pool(state: str, size: int, pre_alloc: int | None = None) -> SlotPool:
    return cast(SlotPool, ShippedPools(state).make_pool(size, 4, "cpu", pre_alloc))


def served(pool: SlotPool, requests: int) -> SlotPool:
    """`pool`, idle again after so many requests."""
    for number in range(requests):
        request = Request(str(number), [], 1, 0)
        assert pool.alloc([request]) is not None
        pool.free(request)
    return pool


@pytest.mark.parametrize("state", sorted(STATES))
@pytest.mark.parametrize("size", [1, 8, 64])
@pytest.mark.parametrize("pre_alloc", [None, 0, 3])
def test_an_idle_pool_balances_in_every_state(state: str, size: int, pre_alloc: int | None) -> None:
    pool = make_pool(state, size, pre_alloc)
    assert leaked_slots(pool) == 0
    assert leaked_slots(served(pool, 2 * size)) == 0


def test_it_balances_on_the_pool_whose_consumers_are_a_row_short() -> None:
    pool = served(make_pool("original", 8), 20)
    assert ShippedPools("original").consumer_rows("req_to_hidden_states_pool", pool) <= max(
        pool.free_slots
    )
    assert leaked_slots(pool) == 0


@pytest.mark.parametrize("state", sorted(STATES))
def test_it_does_see_a_lost_slot_and_knows_held_ones(state: str) -> None:
    pool = make_pool(state, 8)
    assert pool.alloc([Request("a", [], 1, 0), Request("b", [], 1, 0)]) is not None
    assert leaked_slots(pool) == 2
    assert leaked_slots(pool, held_by_sessions=2) == 0


@pytest.mark.parametrize(
    "pool", [ReqToTokenPool(8, 4, "cpu"), DecodeReqToTokenPool(8, 4, "cpu", 3)], ids=["plain", "pd"]
)
def test_a_size_bumped_for_the_padding_row_would_leak_one_slot_for_ever(pool: SlotPool) -> None:
    pool.size += 1
    for requests in (0, 1, 100):
        assert leaked_slots(served(pool, requests)) == 1
