"""Overlap scheduling's future buffers: a ring that never hands out what somebody still owns."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.engine.future import (
    NEW_SEQ_LENS,
    TOPK_INDEX,
    TOPK_P,
    UPSTREAM_ORDER,
    VERIFIED_ID,
    FutureMap,
    Outcome,
)
from poolbisect.engine.request import Request
from poolbisect.memory.arena import Arena
from poolbisect.memory.guard import Guard, MemoryMode

STEPS = 3


def make_map(max_running: int) -> FutureMap:
    future = FutureMap(max_running, STEPS)
    arena = Arena("cpu", 3 << 20, Guard(MemoryMode.GUARD))
    for build in future.builders(arena).values():
        build()
    return future


def new_requests(count: int, prefix: str = "r") -> list[Request]:
    return [Request(f"{prefix}{number}", [], 1, 0) for number in range(count)]


def outcome(start: int, count: int) -> Outcome:
    """Values told apart by the index they are stored at."""
    at = torch.arange(start, start + count)
    wide = at[:, None] * 10 + torch.arange(STEPS)
    return Outcome(at.int(), at + 500, wide.float() / 7, wide)


def test_rows_and_kinds_are_upstreams() -> None:
    future = make_map(8)
    assert set(future.buffers) == set(UPSTREAM_ORDER)
    shapes = {name: tuple(buffer.tensor.shape) for name, buffer in future.buffers.items()}
    assert shapes == {
        TOPK_P: (40, STEPS),
        TOPK_INDEX: (40, STEPS),
        VERIFIED_ID: (40,),
        NEW_SEQ_LENS: (40,),
    }
    assert future.buffers[VERIFIED_ID].tensor.dtype == torch.int32
    for buffer in future.buffers.values():
        assert buffer.space is future.space
        assert future.space.missing_rows(buffer.rows) == 0


def test_what_is_stored_comes_back_in_the_order_asked_for() -> None:
    future = make_map(8)
    first, second = future.reserve(3), future.reserve(4)
    for start, end in (first, second):
        future.store(start, end, outcome(start, end - start), new_requests(end - start))
    indices = [second[0] + 2, first[0], second[0], first[0] + 2]
    found = future.resolve(torch.tensor(indices))
    assert found.verified_id.tolist() == indices
    assert found.new_seq_lens.tolist() == [index + 500 for index in indices]
    assert found.topk_index.tolist() == [[index * 10 + k for k in range(3)] for index in indices]
    assert torch.equal(found.topk_p, found.topk_index.float() / 7)


def test_a_resolved_outcome_outlives_what_is_stored_there_next() -> None:
    future = make_map(2)
    start, end = future.reserve(2)
    future.store(start, end, outcome(start, 2), new_requests(2))
    found = future.resolve(torch.arange(start, end))
    for buffer in future.buffers.values():
        buffer.tensor.fill_(-1)
    assert found.verified_id.tolist() == [start, start + 1]
    assert found.topk_index.min() >= 0


def test_an_index_is_owned_from_store_to_resolve() -> None:
    future = make_map(4)
    start, end = future.reserve(3)
    assert future.space.owners == {}
    future.store(start, end, outcome(start, 3), new_requests(3))
    assert future.space.owners == {start: "r0", start + 1: "r1", start + 2: "r2"}
    future.resolve(torch.tensor([start, start + 2]))
    assert future.space.owners == {start + 1: "r1"}


def test_every_request_needs_its_index() -> None:
    future = make_map(4)
    start, end = future.reserve(3)
    with pytest.raises(ValueError, match="shorter"):
        future.store(start, end, outcome(start, 3), new_requests(2))


@given(
    max_running=st.integers(1, 7),
    life=st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.integers(0, 7)), max_size=60),
)
def test_an_owned_index_is_never_handed_out_again(
    max_running: int, life: list[tuple[bool, int, int]]
) -> None:
    """A running batch and up to two prefills behind it: three batches in the ring, of any size.

    Each step some requests finish, then either new ones are prefilled or the running ones decode.
    """
    future = make_map(max_running)
    running: dict[int, int] = {}
    prefills = 0
    for wants_prefill, finish, count in life:
        for index in list(running)[:finish]:
            future.resolve(torch.tensor([index]))
            del running[index]
        room = max_running - len(running)
        if wants_prefill and room and prefills < 2:
            count, prefills = min(max(count, 1), room), prefills + 1
        elif running:
            indices = torch.tensor(list(running))
            assert future.resolve(indices).verified_id.tolist() == list(running.values())
            count, running, prefills = len(running), {}, 0
        else:
            continue
        start, end = future.reserve(count)
        assert end - start == count
        assert not set(range(start, end)) & set(future.space.owners)
        assert start >= future.space.first
        assert end - 1 <= future.space.last
        future.store(start, end, outcome(start, count), new_requests(count))
        running |= {index: index for index in range(start, end)}
        assert set(running) == set(future.space.owners)


@given(max_running=st.integers(1, 7), counts=st.lists(st.integers(1, 7), max_size=40))
def test_the_ring_turns_and_every_batch_is_contiguous_in_the_buffers(
    max_running: int, counts: list[int]
) -> None:
    future = make_map(max_running)
    for count in (min(count, max_running) for count in counts):
        start, end = future.reserve(count)
        assert end - start == count
        assert 1 <= start <= future.ring
        assert end <= future.rows
