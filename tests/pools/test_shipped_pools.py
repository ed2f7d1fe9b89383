"""The shipped pools: what they hand out in each state, and that only their consumers differ."""

from __future__ import annotations

import difflib
import inspect
import random
from typing import cast

import pytest
import torch

from poolbisect.engine.request import Request
from poolbisect.errors import NotApplicableError
from poolbisect.pools import corrected, original
from poolbisect.pools.shipped import STATES, ShippedPools
from poolbisect.pools.slots import PoolMisuseError, SlotPool

CONTEXT = 4
HIDDEN_STATES, TOKEN_TABLE = "req_to_hidden_states_pool", "token_table"
every_state = pytest.mark.parametrize("state", sorted(STATES))
every_size = pytest.mark.parametrize("size", [1, 8, 64])
every_pre_alloc = pytest.mark.parametrize("pre_alloc", [None, 0, 3])


def new_requests(count: int) -> list[Request]:
    return [Request(str(number), [], 1, 0) for number in range(count)]


def make_pool(state: str, size: int, pre_alloc: int | None = None) -> SlotPool:
    return cast(SlotPool, ShippedPools(state).make_pool(size, CONTEXT, "cpu", pre_alloc))


def allocate(pool: SlotPool, count: int) -> list[Request]:
    requests = new_requests(count)
    assert pool.alloc(requests) is not None
    return requests


@every_state
@every_size
@every_pre_alloc
def test_rows_slots_and_size(state: str, size: int, pre_alloc: int | None) -> None:
    pool = make_pool(state, size, pre_alloc)
    slots = size + (pre_alloc or 0)
    first = 0 if state == "unpadded" else 1
    assert pool.req_to_token.shape == (slots + first, CONTEXT)
    assert pool.req_to_token.dtype == torch.int32
    assert pool.free_slots == list(range(first, slots + first))
    assert pool.available_size() == slots
    assert pool.size == size
    assert getattr(pool, "pre_alloc_size", None) == pre_alloc


@every_size
@every_pre_alloc
def test_only_the_corrected_pool_says_how_many_rows_it_has(
    size: int, pre_alloc: int | None
) -> None:
    pool = make_pool("corrected", size, pre_alloc)
    assert vars(pool)["_alloc_size"] == pool.req_to_token.shape[0]
    for state in ("original", "unpadded"):
        assert not hasattr(make_pool(state, size, pre_alloc), "_alloc_size")


@every_state
@every_size
@every_pre_alloc
@pytest.mark.parametrize("buffer", [HIDDEN_STATES, TOKEN_TABLE])
def test_consumers_are_short_by_the_padding_row_and_the_pre_allocation_until_corrected(
    state: str, size: int, pre_alloc: int | None, buffer: str
) -> None:
    pool = make_pool(state, size, pre_alloc)
    missing = max(pool.free_slots) + 1 - ShippedPools(state).consumer_rows(buffer, pool)
    extra = pre_alloc or 0
    assert missing == {"unpadded": extra, "original": extra + 1, "corrected": 0}[state]


@every_state
def test_an_unknown_consumer_is_not_applicable(state: str) -> None:
    with pytest.raises(NotApplicableError, match="no_such_buffer"):
        ShippedPools(state).consumer_rows("no_such_buffer", make_pool(state, 1))


@every_state
def test_pools_are_made_as_upstreams_users_make_them(state: str) -> None:
    module = STATES[state]
    plain = module.ReqToTokenPool(size=2, max_context_len=8, device="cpu")
    decode = module.DecodeReqToTokenPool(size=2, max_context_len=8, device="cpu", pre_alloc_size=1)
    for pool in (plain, decode):
        assert (pool.size, pool.max_context_len, pool.device) == (2, 8, "cpu")
    assert not isinstance(decode, module.ReqToTokenPool), "nor is it upstream"


@every_state
@every_pre_alloc
def test_slots_go_out_first_in_first_out(state: str, pre_alloc: int | None) -> None:
    pool = make_pool(state, 8, pre_alloc)
    expected = list(pool.free_slots)
    requests = allocate(pool, len(expected))
    assert [request.req_pool_idx for request in requests] == expected
    random.Random(5).shuffle(requests)
    freed = []
    for request in requests:
        freed.append(request.req_pool_idx)
        pool.free(request)
        assert request.req_pool_idx is None
    assert pool.free_slots == freed
    assert pool.alloc(new_requests(len(freed))) == freed


@every_state
def test_too_few_free_slots_leave_everything_as_it_was(state: str) -> None:
    pool = make_pool(state, 4)
    held = allocate(pool, 2)
    held[0].is_chunked = 1
    free = list(pool.free_slots)
    batch = [held[0], *new_requests(3)]
    assert pool.alloc(batch) is None
    assert pool.free_slots == free
    assert [request.req_pool_idx for request in batch[1:]] == [None] * 3
    assert pool.alloc(batch[:3]) == [held[0].req_pool_idx, *free]
    assert pool.available_size() == 0
    assert pool.alloc([]) == []


@every_state
@pytest.mark.parametrize(("chunked", "committed"), [(1, 0), (0, 5), (2, 7)])
def test_a_chunked_or_committed_request_keeps_its_slot(
    state: str, chunked: int, committed: int
) -> None:
    pool = make_pool(state, 4)
    first, second = allocate(pool, 2)
    second.is_chunked, second.kv_committed_len = chunked, committed
    kept, free = second.req_pool_idx, pool.free_slots[0]
    newcomer = new_requests(1)[0]
    assert pool.alloc([newcomer, second]) == [free, kept]
    assert (newcomer.req_pool_idx, second.req_pool_idx) == (free, kept)
    assert first.req_pool_idx not in pool.free_slots


@every_state
@every_pre_alloc
def test_a_request_that_may_not_keep_its_slot_is_refused(state: str, pre_alloc: int | None) -> None:
    pool = make_pool(state, 4, pre_alloc)
    (holder,) = allocate(pool, 1)
    free = list(pool.free_slots)
    with pytest.raises(PoolMisuseError):
        pool.alloc([*new_requests(1), holder])
    assert pool.free_slots == free


@every_state
@pytest.mark.parametrize(("pre_alloc", "allowed"), [(None, True), (2, False)])
def test_the_decode_pool_lets_one_request_of_a_batch_keep_its_slot(
    state: str, pre_alloc: int | None, allowed: bool
) -> None:
    pool = make_pool(state, 4, pre_alloc)
    holders = allocate(pool, 2)
    for holder in holders:
        holder.kv_committed_len = 1
    slots = [holder.req_pool_idx for holder in holders]
    assert pool.alloc(holders[:1]) == slots[:1]
    if allowed:
        assert pool.alloc(holders) == slots
    else:
        with pytest.raises(PoolMisuseError, match="at most 1"):
            pool.alloc(holders)


@every_state
def test_freeing_a_request_without_a_slot_is_refused(state: str) -> None:
    pool = make_pool(state, 2)
    (request,) = allocate(pool, 1)
    pool.free(request)
    with pytest.raises(PoolMisuseError):
        pool.free(request)
    assert pool.available_size() == 2


@every_state
@every_pre_alloc
def test_clear_makes_every_slot_free_in_the_first_order(state: str, pre_alloc: int | None) -> None:
    pool = make_pool(state, 8, pre_alloc)
    at_first = list(pool.free_slots)
    for request in reversed(allocate(pool, 5)):
        pool.free(request)
    allocate(pool, 2)
    pool.clear()
    assert pool.free_slots == at_first


@every_state
def test_write_sets_the_locations_of_one_slot(state: str) -> None:
    pool = make_pool(state, 3)
    slot = pool.free_slots[-1]
    pool.write((slot, slice(1, 3)), torch.tensor([7, 9], dtype=torch.int32))
    expected = torch.zeros_like(pool.req_to_token)
    expected[slot, 1], expected[slot, 2] = 7, 9
    assert torch.equal(pool.req_to_token, expected)


def test_the_two_modules_differ_by_the_upstream_patch_only() -> None:
    """`_alloc_size` comes in, and the consumers read the tensor's shape: nothing else."""
    before, after = (inspect.getsource(module).splitlines()[1:] for module in (original, corrected))
    changes = [
        line
        for line in difflib.unified_diff(before, after, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    added = [line for line in changes if line.startswith("+")]
    removed = [line for line in changes if line.startswith("-")]
    assert all("_alloc_size" in line or "req_to_token.shape[0]" in line for line in added)
    assert all("size" in line or "rows" in line for line in removed)
    assert not any("def " in line or "class " in line for line in changes)
    assert sum("req_to_token.shape[0]" in line for line in added) == 2
    assert len(added) + len(removed) <= 16
