"""Ask one tree of sources everything a contract probe asks: its pools, then their buffers."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from poolbisect.errors import InfrastructureError, NotApplicableError
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.interface import MAMBA_MAPPINGS
from poolbisect.pools.upstream import StubGap, SubjectFault, UpstreamCode, UpstreamHybridPool
from poolbisect.pools.upstream.adapter import UpstreamPool
from poolbisect.pools.upstream.allocations import allocations
from poolbisect.pools.upstream.bindings import bindings_of
from poolbisect.probes.facets import BufferState, Condition, ContractState, PoolPlan, PoolState

_CONTEXT = 8  # columns of req_to_token; no buffer asked about depends on them
_POOLS = "sglang/srt/mem_cache/memory_pool.py"


@dataclass(slots=True)
class _Request:
    """A request that only takes a slot."""

    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    is_chunked: int = 0
    mamba_pool_idx: int | None = None
    mamba_ping_pong_track_buffer: list[int] | None = None
    mamba_next_track_idx: int | None = None


def contract_state(tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
    """The state of every pool of `plans`, each on a fresh pool of the tree's own class.

    What the sources do wrong, what ours could not answer and what they do not have are conditions,
    never exceptions.
    """
    code = UpstreamCode(tree)
    return ContractState({plan.kind: _pool_state(code, plan) for plan in plans})


def _pool_state(code: UpstreamCode, plan: PoolPlan) -> PoolState:
    try:
        pool = _make(code, plan)
        slots = pool.free_slots
        if not slots:
            return PoolState(Condition.CRASHED, f"{code.name} makes a pool without a free slot.")
        # The buffers first: judging the behaviour takes slots.
        buffers = {buffer: _buffer_state(code, pool, buffer, max(slots)) for buffer in plan.buffers}
        behaviour = _behaviour(pool, slots)
    except (NotApplicableError, SubjectFault, StubGap, InfrastructureError) as error:
        return PoolState(_condition(error), str(error))
    return PoolState(Condition.OK, behaviour=behaviour, buffers=buffers)


def _make(code: UpstreamCode, plan: PoolPlan) -> UpstreamPool:
    if plan.mamba_size is None:
        return code.make_pool(plan.size, _CONTEXT, pre_alloc_size=plan.pre_alloc_size)
    return code.make_hybrid_pool(
        plan.size,
        _CONTEXT,
        mamba_size=plan.mamba_size,
        pre_alloc_size=plan.pre_alloc_size,
        extra_buffer=plan.extra_buffer,
    )


def _behaviour(pool: UpstreamPool, slots: list[int]) -> dict[str, str]:
    padding = "row 0 is padding" if min(slots) > 0 else "no padding row"
    found = {
        "slots": f"{min(slots)}..{max(slots)} of {pool.req_to_token.shape[0]} rows, {padding}",
        "API": f"alloc({_names(pool.upstream.alloc)}), free({_names(pool.upstream.free)})",
    }
    if isinstance(pool, UpstreamHybridPool):
        mamba = pool.mamba_pool.free_slots
        found["mamba slots"] = f"{min(mamba)}..{max(mamba)} of {pool.mamba_pool.rows} rows"
        found["mamba free list"] = _owner_of_mamba_slots(pool)
    else:
        found["slot order"] = _order(pool)
    return found


def _names(method: Callable[..., object]) -> str:
    return ", ".join(inspect.signature(method).parameters)


def _owner_of_mamba_slots(pool: UpstreamHybridPool) -> str:
    owner = getattr(pool.upstream, "mamba_allocator", None)
    found = owner if hasattr(owner, "free_slots") else pool.upstream.mamba_pool
    return f"kept by {type(found).__name__}"


def _order(pool: UpstreamPool) -> str:
    """Who gets a freed slot: the next request, or one after all slots that were free before."""
    first, second = _Request(), _Request()
    taken = pool.alloc([first])
    if taken is None or pool.available_size() == 0:
        return "one slot"
    pool.free(first)
    again = pool.alloc([second])
    return "last in, first out" if again == taken else "first in, first out"


def _buffer_state(code: UpstreamCode, pool: UpstreamPool, buffer: str, last: int) -> BufferState:
    if buffer in MAMBA_MAPPINGS:
        return _mapping_state(code.tree, pool, buffer, last)
    try:
        found = code.consumer_rows(buffer, pool)
    except (NotApplicableError, SubjectFault, StubGap, InfrastructureError) as error:
        return BufferState(_condition(error), last=last, detail=str(error))
    condition = Condition.SHORT if found.rows <= last else Condition.OK
    return BufferState(condition, found.rows, last, found.expression, found.file, found.line)


def _mapping_state(tree: SourceTree, pool: UpstreamPool, buffer: str, last: int) -> BufferState:
    """A mapping that the pool holds itself: its rows are there to be counted."""
    mapping = getattr(pool.upstream, buffer, None)
    if mapping is None:
        return BufferState(Condition.ABSENT, last=last)
    rows = int(mapping.shape[0])
    file, line, expression = next(_written(tree, buffer), ("", 0, ""))
    condition = Condition.SHORT if rows <= last else Condition.OK
    return BufferState(condition, rows, last, expression, file, line)


def _written(tree: SourceTree, buffer: str) -> Iterator[tuple[str, int, str]]:
    """Where the sources allocate a buffer: file, line and its first dimension as written."""
    usual = tree.read(_POOLS)
    paths = [_POOLS] if usual is not None and buffer in usual else tree.find(buffer)
    for path in paths:
        for allocation in allocations(bindings_of(tree.read(path) or "").tree, buffer):
            shape = allocation.shape
            first = shape.elts[0] if isinstance(shape, ast.Tuple | ast.List) else shape
            yield path, allocation.line, ast.unparse(first)


def _condition(error: Exception) -> Condition:
    if isinstance(error, NotApplicableError):
        return Condition.ABSENT
    # Memory is limited for the sources alone, so running out of it is theirs.
    if isinstance(error, SubjectFault | InfrastructureError):
        return Condition.CRASHED
    return Condition.UNTESTABLE
