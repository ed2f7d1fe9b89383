"""Upstream's hybrid pools of every era behave alike behind the adapter, and stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from poolbisect.errors import NotApplicableError, UsageError
from poolbisect.history.source_tree import SourceTree
from poolbisect.memory.arena import Arena, IllegalAccessError
from poolbisect.memory.guard import Guard, MemoryMode, OutOfRangeError
from poolbisect.pools.interface import MAMBA_MAPPING, PING_PONG_MAPPING
from poolbisect.pools.slots import PoolMisuseError
from poolbisect.pools.unchecked import UncheckedRows
from poolbisect.pools.upstream import SubjectFault, UpstreamHybridPool, load_upstream

MakeTree = Callable[[Mapping[str, str]], SourceTree]
MakeRequests = Callable[[int], list[Any]]

POOLS, DECODE = "sglang/srt/mem_cache/memory_pool.py", "sglang/srt/disaggregation/decode.py"
ALLOCATOR = "sglang/srt/mem_cache/allocator/mamba.py"

COUNTING = """
    import torch
    from dataclasses import dataclass
    class ReqToTokenPool:
        def __init__(self, size, max_context_len, device):
            self.size, self.max_context_len, self.device = size, max_context_len, device
            self.req_to_token = torch.zeros((size, max_context_len), dtype=torch.int32)
            self.free_slots = list(range(size))
        def alloc(self, need_size):
            if need_size > len(self.free_slots): return None
            taken, self.free_slots = self.free_slots[:need_size], self.free_slots[need_size:]
            return taken
        def available_size(self): return len(self.free_slots)
        def free(self, free_index): self.free_slots += [free_index]
        def clear(self): self.free_slots = list(range(self.size))
    class MambaPool:
        @dataclass(frozen=True, kw_only=True)
        class State:
            conv: torch.Tensor
            temporal: torch.Tensor
        def __init__(self, *, size, cache_params, device):
            shape = cache_params.shape
            assert shape.conv[0] > shape.conv[1]
            rows = (len(cache_params.layers), size + 1)
            self.mamba_cache = self.State(
                conv=torch.zeros(rows + shape.conv, dtype=cache_params.dtype.conv),
                temporal=torch.zeros(rows + shape.temporal, dtype=cache_params.dtype.temporal),
            )
            self.size = size
            self.free_slots = torch.arange(size, dtype=torch.int64, device=device)
        def available_size(self): return len(self.free_slots)
        def alloc(self, count):
            if count > len(self.free_slots): return None
            taken, self.free_slots = self.free_slots[:count], self.free_slots[count:]
            return taken
        def free(self, slots): self.free_slots = torch.cat((self.free_slots, slots))
        def clear(self): self.free_slots = torch.arange(self.size)
    class HybridReqToTokenPool(ReqToTokenPool):
        def __init__(self, *, size, mamba_size, max_context_len, device, cache_params):
            super().__init__(size, max_context_len, device)
            self.mamba_pool = MambaPool(size=mamba_size, cache_params=cache_params, device=device)
            self.req_index_to_mamba_index_mapping = torch.zeros(mamba_size, dtype=torch.int32)
        def alloc(self, need_size, reqs=None):
            slots = super().alloc(need_size)
            if slots is None: return None
            for r in reqs:
                if r.mamba_pool_idx is None:
                    r.mamba_pool_idx = self.mamba_pool.alloc(1)[0]
            self.req_index_to_mamba_index_mapping[slots] = torch.tensor(
                [r.mamba_pool_idx for r in reqs], dtype=torch.int32)
            return slots
        def get_mamba_indices(self, slots): return self.req_index_to_mamba_index_mapping[slots]
        def free(self, free_index, free_mamba_cache=True):
            super().free(free_index)
            if free_mamba_cache:
                self.mamba_pool.free(self.req_index_to_mamba_index_mapping[[free_index]])
        def clear(self):
            super().clear()
            self.mamba_pool.clear()
"""

TAKING_REQUESTS = """
    import torch
    from types import SimpleNamespace
    from sglang.srt.mem_cache.allocator.mamba import MambaSlotAllocator
    from sglang.srt.utils import async_h2d
    class ReqToTokenPool:
        def __init__(self, size, max_context_len, device):
            self.size, self.max_context_len, self.device = size, max_context_len, device
            self.req_to_token = torch.zeros((size, max_context_len), dtype=torch.int32)
            self.free_slots = list(range(size))
        def alloc(self, reqs):
            new = [r for r in reqs if r.kv.req_pool_idx is None]
            if len(new) > len(self.free_slots): return None
            for r in new: r.kv.req_pool_idx = self.free_slots.pop(0)
            return [r.kv.req_pool_idx for r in reqs]
        def available_size(self): return len(self.free_slots)
        def free(self, req):
            self.free_slots.append(req.kv.req_pool_idx)
            req.kv.req_pool_idx = None
        def clear(self): self.free_slots = list(range(self.size))
    class MambaPool:
        def __init__(self, size, shapes, layers):
            assert all(len(shape) == 2 for shape in shapes.conv)
            self.size = size
            self.mamba_cache = SimpleNamespace(
                temporal=torch.zeros((layers, size + 1) + shapes.temporal))
    class HybridReqToTokenPool(ReqToTokenPool):
        def __init__(self, *, size, mamba_size, max_context_len, device, cache_params,
                     mamba_layer_ids, enable_mamba_extra_buffer, enable_overlap_schedule=True):
            super().__init__(size, max_context_len, device)
            self.mamba_pool = MambaPool(mamba_size, cache_params.shape, len(mamba_layer_ids))
            self.mamba_allocator = MambaSlotAllocator(mamba_size)
            self.extra, self.width = enable_mamba_extra_buffer, 2 if enable_overlap_schedule else 1
            self.req_index_to_mamba_index_mapping = torch.zeros(mamba_size, dtype=torch.int32)
            if self.extra:
                self.req_index_to_mamba_ping_pong_track_buffer_mapping = torch.zeros(
                    (mamba_size, self.width), dtype=torch.int64)
        def alloc(self, reqs):
            slots = super().alloc(reqs)
            if slots is None: return None
            for r in reqs:
                if not r.kv.holds_mamba:
                    found = self.mamba_allocator.alloc(1)
                    assert found is not None, "no mamba slot"
                    r.kv.mamba_pool_idx = found[0]
                if self.extra and r.kv.mamba_ping_pong_track_buffer is None:
                    r.kv.mamba_ping_pong_track_buffer = self.mamba_allocator.alloc(self.width)
                    r.kv.mamba_next_track_idx = 0
            rows = async_h2d(slots, dtype=torch.int64, device=self.device)
            self.req_index_to_mamba_index_mapping[rows] = torch.stack(
                [r.kv.mamba_pool_idx for r in reqs]).to(torch.int32)
            if self.extra:
                self.req_index_to_mamba_ping_pong_track_buffer_mapping[rows] = torch.stack(
                    [r.kv.mamba_ping_pong_track_buffer for r in reqs])
            return slots
        def get_mamba_indices(self, slots): return self.req_index_to_mamba_index_mapping[slots]
        def free_mamba_cache(self, req, keep=None):
            self.mamba_allocator.free(req.kv.mamba_pool_idx.unsqueeze(0))
            req.kv.mamba_pool_idx = None
            if self.extra:
                self.mamba_allocator.free(
                    self.req_index_to_mamba_ping_pong_track_buffer_mapping[req.kv.req_pool_idx])
        def clear(self):
            super().clear()
            self.mamba_allocator.clear()
"""

SLOT_ALLOCATOR = """
    import torch
    class MambaSlotAllocator:
        def __init__(self, size):
            self.size = size
            self.clear()
        def available_size(self): return len(self.free_slots)
        def alloc(self, count):
            if count > len(self.free_slots): return None
            taken, self.free_slots = self.free_slots[:count], self.free_slots[count:]
            return taken
        def free(self, slots): self.free_slots = torch.cat((self.free_slots, slots))
        def clear(self): self.free_slots = torch.arange(self.size)
"""

PD_DECODE = """
    from sglang.srt.mem_cache.memory_pool import HybridReqToTokenPool
    class HybridMambaDecodeReqToTokenPool(HybridReqToTokenPool):
        def __init__(self, size, max_context_len, device, cache_params, pre_alloc_size):
            super().__init__(size=size + pre_alloc_size, mamba_size=size + pre_alloc_size,
                max_context_len=max_context_len, device=device, cache_params=cache_params)
            self.pre_alloc_size = pre_alloc_size
"""

ERAS = {
    "counting": {POOLS: COUNTING, DECODE: PD_DECODE},
    "requests": {POOLS: TAKING_REQUESTS, ALLOCATOR: SLOT_ALLOCATOR},
}


@pytest.fixture(params=list(ERAS))
def era(request: pytest.FixtureRequest, tree: MakeTree) -> SourceTree:
    """Sources of each way in which upstream's hybrid pools have been called."""
    return tree(ERAS[request.param])


def make_pool(tree: SourceTree, size: int, mamba_size: int, **more: Any) -> UpstreamHybridPool:
    return load_upstream(tree).make_hybrid_pool(size, 4, mamba_size=mamba_size, **more)


def serve(pool: UpstreamHybridPool, requests: list[Any]) -> None:
    for req in requests:
        slots = pool.alloc([req])
        assert slots is not None
        assert pool.get_mamba_indices(torch.tensor(slots)).tolist() == [req.mamba_pool_idx]
        pool.free_mamba_cache(req)
        pool.free(req)
        assert req.req_pool_idx is req.mamba_pool_idx is None


def test_slots_are_read_from_upstreams_own_pools(
    era: SourceTree, new_requests: MakeRequests
) -> None:
    pool = make_pool(era, 4, 4)
    assert (pool.mamba_pool.size, pool.mamba_pool.rows) == (4, 5)
    assert pool.mamba_pool.free_slots == [0, 1, 2, 3]
    serve(pool, new_requests(6))
    assert (pool.free_slots, pool.mamba_pool.free_slots) == ([2, 3, 0, 1], [2, 3, 0, 1])
    a, b = new_requests(2)
    assert pool.alloc([a, b]) == [2, 3]
    assert [type(req.mamba_pool_idx) for req in (a, b)] == [int, int]
    assert pool.mamba_pool.available_size() == 2
    pool.clear()
    assert (pool.free_slots, pool.mamba_pool.free_slots) == ([0, 1, 2, 3], [0, 1, 2, 3])


def test_a_chunked_request_keeps_what_it_holds(era: SourceTree, new_requests: MakeRequests) -> None:
    pool = make_pool(era, 4, 4)
    first, second, third = new_requests(3)
    pool.alloc([first, second])
    second.is_chunked = 1
    assert pool.alloc([second]) == [1]
    assert pool.alloc([third, second]) == [2, 1]
    assert (second.mamba_pool_idx, third.mamba_pool_idx) == (1, 2)
    assert pool.mamba_pool.free_slots == [3]


def test_too_few_request_slots_are_no_fault(era: SourceTree, new_requests: MakeRequests) -> None:
    pool = make_pool(era, 2, 9)
    requests = new_requests(3)
    assert pool.alloc(requests) is None
    assert all(req.req_pool_idx is req.mamba_pool_idx is None for req in requests)


def test_an_index_past_the_mapping_is_upstreams_fault(
    era: SourceTree, new_requests: MakeRequests
) -> None:
    pool = make_pool(era, 5, 3)
    serve(pool, new_requests(3))
    with pytest.raises(SubjectFault, match=r"index 3 is out of bounds .* size 3") as raised:
        pool.alloc(new_requests(1))
    assert isinstance(raised.value.__cause__, IndexError)


def test_too_few_mamba_slots_are_upstreams_fault(
    era: SourceTree, new_requests: MakeRequests
) -> None:
    pool = make_pool(era, 4, 2)
    with pytest.raises(SubjectFault):
        pool.alloc(new_requests(3))


@pytest.mark.parametrize(("overlap", "width"), [(True, 2), (False, 1)])
def test_the_ping_pong_mapping(
    tree: MakeTree, overlap: bool, width: int, new_requests: MakeRequests
) -> None:
    pool = make_pool(tree(ERAS["requests"]), 4, 9, extra_buffer=True, overlap=overlap)
    mapping = pool.req_index_to_mamba_ping_pong_track_buffer_mapping
    assert mapping.shape == (9, width)
    (req,) = new_requests(1)
    slots = pool.alloc([req])
    assert slots is not None
    assert req.mamba_ping_pong_track_buffer == mapping[slots[0]].tolist() == [1, 2][:width]
    assert req.mamba_next_track_idx == 0
    pool.free_mamba_cache(req)
    assert pool.mamba_pool.available_size() == 9


def test_memory_given_by_the_engine_is_what_upstream_indexes(
    era: SourceTree, new_requests: MakeRequests
) -> None:
    pool = make_pool(era, 3, 3)
    given = torch.full((3,), -1, dtype=torch.int32)
    pool.req_index_to_mamba_index_mapping = given
    pool.alloc(new_requests(2))
    assert given.tolist() == [0, 1, -1]
    assert pool.upstream.req_index_to_mamba_index_mapping is given


@pytest.mark.parametrize(
    "other", [torch.zeros(4, dtype=torch.int32), torch.zeros(3, dtype=torch.int64)]
)
def test_memory_of_another_shape_or_type_is_refused(era: SourceTree, other: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=MAMBA_MAPPING):
        make_pool(era, 3, 3).req_index_to_mamba_index_mapping = other


def test_without_bounds_upstreams_own_code_reaches_past_the_end(
    era: SourceTree, new_requests: MakeRequests
) -> None:
    pool = make_pool(era, 5, 3)
    arena = Arena("cpu", 1 << 22, Guard(MemoryMode.GUARD, 0))
    pool.req_index_to_mamba_index_mapping = UncheckedRows(
        arena.allocate(MAMBA_MAPPING, (3,), torch.int32)
    )
    serve(pool, new_requests(5))
    assert arena.guard.writes == 2
    assert sorted(index for _, index in arena.guard.tallies) == [3, 4]


@pytest.mark.parametrize(
    ("mode", "offset", "error"),
    [(MemoryMode.STRICT, 0, OutOfRangeError), (MemoryMode.GUARD, 1 << 24, IllegalAccessError)],
)
def test_what_the_memory_raises_is_not_put_on_upstream(
    era: SourceTree,
    mode: MemoryMode,
    offset: int,
    error: type[Exception],
    new_requests: MakeRequests,
) -> None:
    class FarOff(UncheckedRows):
        def __setitem__(self, index: Any, values: Any) -> None:
            super().__setitem__(torch.as_tensor(index) + 3 + offset, values)

    pool = make_pool(era, 5, 3)
    arena = Arena("cpu", 1 << 22, Guard(mode, 0))
    pool.req_index_to_mamba_index_mapping = FarOff(arena.allocate(MAMBA_MAPPING, (3,), torch.int32))
    with pytest.raises(error):
        pool.alloc(new_requests(1))


def test_a_request_without_mamba_slot_cannot_give_one_back(
    era: SourceTree, new_requests: MakeRequests
) -> None:
    with pytest.raises(PoolMisuseError):
        make_pool(era, 3, 3).free_mamba_cache(new_requests(1)[0])


def test_the_decode_pool_is_made_when_a_pre_alloc_size_is_given(tree: MakeTree) -> None:
    pool = make_pool(tree(ERAS["counting"]), 4, 2, pre_alloc_size=3)
    assert (pool.size, pool.pre_alloc_size, max(pool.free_slots)) == (7, 3, 6)
    assert pool.mamba_pool.size == 7
    with pytest.raises(NotApplicableError, match="HybridMambaDecodeReqToTokenPool"):
        make_pool(tree(ERAS["requests"]), 4, 2, pre_alloc_size=3)


def test_a_mapping_an_era_does_not_have_is_absent(tree: MakeTree) -> None:
    pool = make_pool(tree(ERAS["counting"]), 4, 2, extra_buffer=True)
    assert not hasattr(pool, PING_PONG_MAPPING)


@pytest.mark.parametrize("mamba_size", [0, -1])
def test_sizes_that_cannot_be_are_refused(era: SourceTree, mamba_size: int) -> None:
    with pytest.raises(UsageError, match="mamba pool"):
        make_pool(era, 4, mamba_size)
