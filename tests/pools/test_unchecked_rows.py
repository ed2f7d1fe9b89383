"""The other face of the mamba fault: memory without bounds, and the same pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from poolbisect.memory.arena import Arena, Buffer, IllegalAccessError
from poolbisect.memory.guard import Guard, MemoryMode, OutOfRangeError
from poolbisect.memory.spaces import IndexSpace
from poolbisect.pools.interface import MAMBA_MAPPING, MAMBA_MAPPINGS, HybridRequestPool
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.unchecked import UncheckedRows

MakeRequests = Callable[[int], list[Any]]
SPACE = IndexSpace("request slot", 0, 7)


def make_arena(mode: MemoryMode = MemoryMode.GUARD) -> Arena:
    return Arena("cpu", 1 << 22, Guard(mode, 0))


def unchecked(state: str, arena: Arena) -> tuple[HybridRequestPool, Buffer]:
    """A pool of 8 slots and 3 mamba slots on such memory, and the buffer behind its mapping."""
    pool = ShippedPools(state, "mamba").make_hybrid_pool(8, 4, "cpu", mamba_size=3)
    own = pool.req_index_to_mamba_index_mapping
    arena.open_region(2 << 20)
    mapping = arena.allocate(MAMBA_MAPPING, tuple(own.shape), own.dtype, SPACE)
    neighbour = arena.allocate("neighbour", (256,), torch.int32)
    arena.close_region()
    pool.req_index_to_mamba_index_mapping = UncheckedRows(mapping)
    return pool, neighbour


def serve(pool: HybridRequestPool, requests: list[Any]) -> None:
    for req in requests:
        slots = pool.alloc([req])
        assert pool.get_mamba_indices(torch.tensor(slots)).tolist() == [req.mamba_pool_idx]
        pool.free_mamba_cache(req)
        pool.free(req)


def test_the_pool_writes_past_the_end_and_reads_back_what_it_wrote(
    new_requests: MakeRequests,
) -> None:
    arena = make_arena()
    pool, _ = unchecked("original", arena)
    serve(pool, new_requests(8))
    guard = arena.guard
    assert (guard.writes, guard.reads) == (5, 5)
    assert sorted(guard.tallies) == [(MAMBA_MAPPING, slot) for slot in (3, 4, 5, 6, 7)]


def test_the_corrected_pool_stays_inside_the_same_memory(new_requests: MakeRequests) -> None:
    arena = make_arena()
    pool, _ = unchecked("corrected", arena)
    serve(pool, new_requests(20))
    assert (arena.guard.writes, arena.guard.reads) == (0, 0)


def test_what_lies_behind_is_overwritten(new_requests: MakeRequests) -> None:
    pool, neighbour = unchecked("original", make_arena())
    pool.req_index_to_mamba_index_mapping[128] = 7  # 512 B on: where the next buffer begins
    assert neighbour.tensor[0] == 7


def test_the_access_is_recorded_on_behalf_of_the_request(new_requests: MakeRequests) -> None:
    arena = make_arena()
    pool, _ = unchecked("original", arena)
    serve(pool, new_requests(3))
    rows = pool.req_index_to_mamba_index_mapping
    assert isinstance(rows, UncheckedRows)
    with rows.on_behalf_of(["the fourth"]):
        pool.alloc(new_requests(1))
    assert arena.guard.offenders == {"the fourth"}


def test_strict_memory_raises_its_own_error_through_the_pool(new_requests: MakeRequests) -> None:
    pool, _ = unchecked("original", make_arena(MemoryMode.STRICT))
    serve(pool, new_requests(3))
    with pytest.raises(OutOfRangeError, match=r"req_index_to_mamba_index_mapping\[3\] of 3 rows"):
        pool.alloc(new_requests(1))


def test_leaving_the_mapped_memory_is_an_illegal_access() -> None:
    pool, _ = unchecked("original", make_arena())
    with pytest.raises(IllegalAccessError):
        pool.req_index_to_mamba_index_mapping[1 << 20] = 1


@pytest.mark.parametrize("name", MAMBA_MAPPINGS)
@pytest.mark.parametrize("index", [2, [2], [0, 2], torch.tensor([1, 2]), torch.tensor([[0], [2]])])
def test_inside_its_rows_it_is_the_tensor(name: str, index: Any) -> None:
    shape = (4,) if name == MAMBA_MAPPING else (4, 2)
    buffer = make_arena().allocate(name, shape, torch.int32)
    rows, plain = UncheckedRows(buffer), torch.zeros(shape, dtype=torch.int32)
    assert (rows.shape, rows.dtype) == (plain.shape, plain.dtype)
    values = torch.arange(plain[index].numel(), dtype=torch.int32).view(plain[index].shape) + 5
    rows[index], plain[index] = values, values
    assert torch.equal(rows[index], plain[index])
    assert torch.equal(buffer.tensor, plain)
    rows[index], plain[index] = 9, 9
    assert torch.equal(buffer.tensor, plain)
    rows.zero_()
    assert not buffer.tensor.any()
