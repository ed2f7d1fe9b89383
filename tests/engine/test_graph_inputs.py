"""Captured graphs: batch sizes, and what their padded rows hold (case A6)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.engine.config import PaddedRows, graph_buckets
from poolbisect.engine.graph_inputs import GraphInputs
from poolbisect.memory.arena import Arena
from poolbisect.memory.guard import Guard, MemoryMode

WIDTH = 3
A6_BATCHES = [[1, 2, 3, 4], [5], [6, 7, 8, 1], [2, 3]]


def make_inputs(max_bs: int, padded_rows: PaddedRows) -> GraphInputs:
    arena = Arena("cpu", 3 << 20, Guard(MemoryMode.GUARD))
    return GraphInputs.allocate(arena, "graph", max_bs, WIDTH, padded_rows)


def replay(inputs: GraphInputs, slots: list[int], rows: int) -> list[int]:
    """The request slots of all rows of one replay of the graph captured for `rows`."""
    count = len(slots)
    inputs.fill_slots(torch.tensor(slots))
    filled = inputs.fill(
        rows,
        torch.full((count, WIDTH), 7),
        torch.full((count, WIDTH), 8),
        torch.full((count, WIDTH), 9),
        tuple(map(str, slots)),
    )
    assert filled.requests == tuple(map(str, slots))
    return filled.slots.tolist()


def test_a6_stale_padded_rows_carry_the_slots_of_earlier_larger_batches() -> None:
    inputs = make_inputs(4, PaddedRows.STALE)
    seen = [replay(inputs, slots, 4) for slots in A6_BATCHES]
    assert seen == [[1, 2, 3, 4], [5, 2, 3, 4], [6, 7, 8, 1], [2, 3, 8, 1]]
    assert seen[1][2:] != seen[3][2:], "what the same padded rows carry differs from step to step"


def test_a6_zeroed_padded_rows_are_zero() -> None:
    inputs = make_inputs(4, PaddedRows.ZEROED)
    seen = [replay(inputs, slots, 4) for slots in A6_BATCHES]
    assert seen == [[1, 2, 3, 4], [5, 0, 0, 0], [6, 7, 8, 1], [2, 3, 0, 0]]


@pytest.mark.parametrize("policy", list(PaddedRows), ids=str)
def test_padded_rows_start_with_slot_zero(policy: PaddedRows) -> None:
    assert replay(make_inputs(4, policy), [3], 4) == [3, 0, 0, 0]


@given(
    batches=st.lists(st.lists(st.integers(1, 64), min_size=1, max_size=8), min_size=1, max_size=8),
    policy=st.sampled_from(list(PaddedRows)),
)
def test_real_rows_hold_their_slots_and_padded_rows_what_the_policy_says(
    batches: list[list[int]], policy: PaddedRows
) -> None:
    inputs = make_inputs(8, policy)
    left = [0] * 8
    for slots in batches:
        rows = inputs.bucket(len(slots))
        tail = left[len(slots) :] if policy is PaddedRows.STALE else [0] * (8 - len(slots))
        left = [*slots, *tail]
        assert replay(inputs, slots, rows) == left[:rows]


def test_padded_rows_read_token_0_at_position_0_and_write_location_0() -> None:
    inputs = make_inputs(4, PaddedRows.STALE)
    for count in (4, 2):
        tokens, positions, out_locs = (torch.full((count, WIDTH), value) for value in (7, 8, 9))
        filled = inputs.fill(4, tokens, positions, out_locs, ("a",) * count)
        for tensor, value in zip(
            (filled.tokens, filled.positions, filled.out_locs), (7, 8, 9), strict=True
        ):
            assert tensor.tolist() == [[value] * WIDTH] * count + [[0] * WIDTH] * (4 - count)


def test_a_narrower_input_uses_the_head_of_each_row() -> None:
    inputs = make_inputs(2, PaddedRows.ZEROED)
    tokens = torch.tensor([[1, 2]])
    filled = inputs.fill(2, tokens, tokens + 10, tokens + 20, ("a",))
    assert filled.tokens.tolist() == [[1, 2], [0, 0]]
    assert filled.out_locs.tolist() == [[21, 22], [0, 0]]


@given(max_bs=st.integers(1, 200), rows=st.integers(1, 220))
def test_a_batch_replays_the_smallest_graph_that_holds_it(max_bs: int, rows: int) -> None:
    inputs = make_inputs(max_bs, PaddedRows.STALE)
    sizes = graph_buckets(max_bs)
    fitting = [size for size in sizes if size >= rows]
    assert inputs.bucket(rows) == (min(fitting) if fitting else rows)
    assert sizes[-1] == max_bs
    assert list(sizes) == sorted(set(sizes))


def test_batch_sizes_are_upstreams() -> None:
    assert graph_buckets(64) == (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64)
    assert graph_buckets(1) == (1,)
    assert graph_buckets(3) == (1, 2, 3)


def test_rows_of_a_batch_are_no_index_space() -> None:
    """No slot ever indexes these rows: the audit must tell the two axes apart."""
    inputs = make_inputs(4, PaddedRows.STALE)
    buffers = (inputs.input_ids, inputs.positions, inputs.out_cache_loc, inputs.req_pool_indices)
    assert all(buffer.space is None for buffer in buffers)
