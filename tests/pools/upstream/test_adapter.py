"""Upstream's pools of every era behave alike behind the adapter, and stay what they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolbisect.errors import UsageError
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.slots import PoolMisuseError
from poolbisect.pools.upstream import StubGap, largest_slot, load_upstream, slot_range

MakeTree = Callable[[str], SourceTree]


@dataclass
class Req:
    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    is_chunked: int = 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("alloc"), st.integers(0, 4)),
        st.tuples(st.just("free"), st.integers(0, 30)),
        st.tuples(st.just("clear"), st.just(0)),
    ),
    max_size=30,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(size=st.integers(1, 6), steps=steps)
def test_slots_go_first_in_first_out_in_every_era(
    era_tree: SourceTree, size: int, steps: list[tuple[str, int]]
) -> None:
    pool = load_upstream(era_tree).make_pool(size, 4)
    expected = deque(range(size))
    running: list[Req] = []
    for action, number in steps:
        if action == "clear":
            pool.clear()
            running, expected = [], deque(range(size))
        elif action == "free" and running:
            req = running.pop(number % len(running))
            expected.append(req.req_pool_idx)
            pool.free(req)
            assert req.req_pool_idx is None
        elif action == "alloc":
            reqs = [Req() for _ in range(number)]
            slots = pool.alloc(reqs)
            if number > len(expected):
                assert slots is None
                assert all(req.req_pool_idx is None for req in reqs)
            else:
                assert slots == [expected.popleft() for _ in reqs]
                assert slots == [req.req_pool_idx for req in reqs]
                running += reqs
        assert pool.free_slots == list(expected)
        assert pool.available_size() == len(expected)


def test_a_chunked_request_keeps_its_slot_beside_new_ones(era_tree: SourceTree) -> None:
    pool = load_upstream(era_tree).make_pool(4, 4)
    first, second = Req(), Req()
    pool.alloc([first, second])
    second.is_chunked = 1
    third = Req()
    assert pool.alloc([second, third]) == [1, 2]
    assert pool.available_size() == 1


def test_a_request_with_committed_kv_keeps_its_slot(era_tree: SourceTree) -> None:
    pool = load_upstream(era_tree).make_pool(4, 4)
    req = Req()
    pool.alloc([req])
    req.kv_committed_len = 7
    assert pool.alloc([req]) == [0]


def test_the_order_is_upstreams_own(pool_tree: MakeTree) -> None:
    last_out_first = ERA_LAST_IN_FIRST_OUT
    pool = load_upstream(pool_tree(last_out_first)).make_pool(3, 2)
    a, b = Req(), Req()
    assert pool.alloc([a, b]) == [2, 1]
    pool.free(a)
    assert pool.alloc([Req()]) == [2]


ERA_LAST_IN_FIRST_OUT = """
    import torch
    class ReqToTokenPool:
        def __init__(self, size, max_context_len, device, enable_memory_saver):
            self.size, self.max_context_len, self.device = size, max_context_len, device
            self.req_to_token = torch.zeros((size, max_context_len), dtype=torch.int32)
            self.free_slots = list(range(size))
        def alloc(self, reqs):
            for r in reqs:
                r.req_pool_idx = self.free_slots.pop()
            return [r.req_pool_idx for r in reqs]
        def free(self, req):
            self.free_slots.append(req.req_pool_idx)
            req.req_pool_idx = None
"""


def test_memory_given_by_the_engine_is_what_upstream_writes_to(era_tree: SourceTree) -> None:
    pool = load_upstream(era_tree).make_pool(3, 5)
    carved = torch.full((3, 5), -1, dtype=torch.int32)
    pool.req_to_token = carved
    pool.write((1, slice(0, 2)), torch.tensor([8, 9], dtype=torch.int32))
    assert carved[1].tolist() == [8, 9, -1, -1, -1]
    assert pool.upstream.req_to_token is carved


@pytest.mark.parametrize(
    "other", [torch.zeros((4, 5), dtype=torch.int32), torch.zeros((3, 5), dtype=torch.int64)]
)
def test_memory_of_another_shape_or_type_is_refused(
    era_tree: SourceTree, other: torch.Tensor
) -> None:
    pool = load_upstream(era_tree).make_pool(3, 5)
    with pytest.raises(ValueError, match="req_to_token"):
        pool.req_to_token = other


def test_freeing_a_request_without_a_slot_is_the_callers_fault(era_tree: SourceTree) -> None:
    pool = load_upstream(era_tree).make_pool(3, 5)
    with pytest.raises(PoolMisuseError):
        pool.free(Req())


@pytest.mark.parametrize("size", [1, 2, 64])
def test_the_range_of_slots_is_read_from_a_fresh_pool(era_tree: SourceTree, size: int) -> None:
    pool = load_upstream(era_tree).make_pool(size, 3)
    found = slot_range(pool)
    assert (found.smallest, found.largest, found.rows) == (0, size - 1, size)
    assert largest_slot(pool) == size - 1


@pytest.mark.parametrize(("size", "context"), [(0, 4), (-1, 4), (4, 0)])
def test_sizes_that_cannot_be_are_refused(era_tree: SourceTree, size: int, context: int) -> None:
    with pytest.raises(UsageError, match="positive"):
        load_upstream(era_tree).make_pool(size, context)


@pytest.mark.parametrize(
    ("signature", "unknown"),
    [("alloc(self, reqs, lane)", "lane"), ("free(self, handle)", "handle")],
)
def test_an_unknown_parameter_is_our_gap(pool_tree: MakeTree, signature: str, unknown: str) -> None:
    method = signature.split("(")[0]
    text = ERA_LAST_IN_FIRST_OUT.replace(
        f"{method}(self, {'reqs' if method == 'alloc' else 'req'})", signature
    )
    with pytest.raises(StubGap, match=unknown):
        load_upstream(pool_tree(text)).make_pool(3, 5)


def test_an_optional_second_parameter_is_left_out(pool_tree: MakeTree) -> None:
    text = ERA_LAST_IN_FIRST_OUT.replace("free(self, req)", "free(self, req, keep=False)")
    pool = load_upstream(pool_tree(text)).make_pool(3, 5)
    req = Req()
    pool.alloc([req])
    pool.free(req)
    assert pool.free_slots == [0, 1, 2]
