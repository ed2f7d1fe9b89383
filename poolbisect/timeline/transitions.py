"""From the state at every position to the transitions between them. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from poolbisect.probes.facets import (
    REQ_TO_TOKEN,
    BufferState,
    Condition,
    ContractState,
    PoolKind,
    PoolState,
)


class Kind(StrEnum):
    """What happened to a buffer's contract, or to a pool."""

    INTRODUCED = "introduced"
    FIXED = "fixed"
    REINTRODUCED = "re-introduced"
    CHANGED = "behaviour changed"


State: TypeAlias = BufferState | PoolState | str
"""Of a buffer, of a pool as a whole, or of one aspect of a pool's behaviour."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One thing that is different at `position` from what it was at its parents.

    `pools`: the kinds of pool of which the same is true. `aspect`: `rows` of a buffer, `pool` for
    whether it can be made, else what of its behaviour. `unknown_before`: positions just before
    that could not be judged, so that the change may have come with one of them.
    """

    position: int
    kind: Kind
    pools: tuple[PoolKind, ...]
    buffer: str
    aspect: str
    before: State | None
    after: State | None
    unknown_before: int = 0


@dataclass(frozen=True, slots=True)
class _Seen:
    """The last known state on the way to a position, and whether it ever was at fault."""

    state: State | None
    ever_faulty: bool = False
    unknown: int = 0


def transitions(
    states: Sequence[ContractState],
    parents: Callable[[int], tuple[int, ...]],
    positions: int,
) -> list[Transition]:
    """All transitions, in order of position; at one position breaches and mendings first.

    `states` are those of `positions` positions, oldest first, then those of positions outside the
    range. A position is compared with all its parents: what one of them has already is not its
    doing. Where a state is not known, the nearest known one before it counts.
    """
    found: list[Transition] = []
    for pool, buffer, aspect in _subjects(states):
        found += _of_subject(states, parents, positions, pool, buffer, aspect)
    found.sort(key=lambda one: (one.position, one.kind is Kind.CHANGED))
    return _merged(found)


def _subjects(states: Sequence[ContractState]) -> Iterator[tuple[PoolKind, str, str]]:
    seen: dict[tuple[PoolKind, str, str], None] = {}
    for state in states:
        for kind, pool in state.pools.items():
            seen[kind, REQ_TO_TOKEN, "pool"] = None
            for aspect in pool.behaviour:
                seen[kind, REQ_TO_TOKEN, aspect] = None
            for buffer in pool.buffers:
                seen[kind, buffer, "rows"] = None
    yield from seen


def _of_subject(
    states: Sequence[ContractState],
    parents: Callable[[int], tuple[int, ...]],
    positions: int,
    pool: PoolKind,
    buffer: str,
    aspect: str,
) -> Iterator[Transition]:
    seen: dict[int, _Seen] = {}
    outside = range(positions, len(states))
    for position in (*outside, *range(positions)):
        before = [seen[parent] for parent in parents(position) if parent in seen]
        state = _state(states[position], pool, buffer, aspect)
        if state is None:
            inherited = before[0] if before else _Seen(None)
            unknown = 0 if inherited.state is None else inherited.unknown + 1
            seen[position] = _Seen(inherited.state, inherited.ever_faulty, unknown)
            continue
        ever = any(parent.ever_faulty for parent in before)
        seen[position] = _Seen(state, ever or _is_fault(state))
        known = [parent for parent in before if parent.state is not None]
        if not known or len(known) < len(before):
            continue
        kinds = [_kind(parent.state, state, parent.ever_faulty) for parent in known]
        if any(kind is None for kind in kinds) or kinds[0] is None:
            continue
        if aspect == "rows" and _pool_comes_or_goes(states, parents, position, pool, kinds[0]):
            continue
        old = known[0].state
        yield Transition(position, kinds[0], (pool,), buffer, aspect, old, state, known[0].unknown)


def _state(state: ContractState, kind: PoolKind, buffer: str, aspect: str) -> State | None:
    """The state of a subject, None where nothing is known of it."""
    pool = state.pools.get(kind)
    if pool is None or not pool.condition.is_known:
        return None
    if aspect == "pool":
        return PoolState(pool.condition, pool.detail)
    if pool.condition is Condition.CRASHED:
        return None  # said once, of the pool
    if aspect == "rows":
        found = pool.buffers.get(buffer, BufferState(Condition.ABSENT))
        return found if found.condition.is_known else None
    return pool.behaviour.get(aspect)


def _is_fault(state: State) -> bool:
    return not isinstance(state, str) and state.condition.is_fault


def _kind(before: State | None, after: State, ever_faulty: bool) -> Kind | None:
    if isinstance(before, str) or isinstance(after, str):
        return None if before == after else Kind.CHANGED
    assert before is not None
    was, now = before.condition, after.condition
    if now.is_fault and not was.is_fault:
        return Kind.REINTRODUCED if ever_faulty else Kind.INTRODUCED
    if was.is_fault and not now.is_fault:
        return Kind.FIXED
    if was is not now:
        return Kind.CHANGED
    if isinstance(before, BufferState) and isinstance(after, BufferState):
        return Kind.CHANGED if before.missing != after.missing else None
    return None


def _pool_comes_or_goes(
    states: Sequence[ContractState],
    parents: Callable[[int], tuple[int, ...]],
    position: int,
    pool: PoolKind,
    kind: Kind,
) -> bool:
    """Whether a buffer only appears or disappears together with its pool, which is said of that."""
    if kind is not Kind.CHANGED:
        return False
    around = [states[index].pools.get(pool) for index in (position, *parents(position)[:1])]
    return any(one is not None and one.condition is Condition.ABSENT for one in around)


def _merged(found: Sequence[Transition]) -> list[Transition]:
    """One transition for kinds of pool of which exactly the same is true."""
    merged: dict[tuple[object, ...], Transition] = {}
    for one in found:
        same = (
            (one.position, one.kind, one.buffer, one.aspect, one.before, one.after)
            if isinstance(one.after, str)
            else (one.position, one.pools, one.buffer, one.aspect)
        )
        known = merged.get(same)
        pools = one.pools if known is None else known.pools + one.pools
        merged[same] = Transition(
            one.position,
            one.kind,
            pools,
            one.buffer,
            one.aspect,
            one.before,
            one.after,
            one.unknown_before,
        )
    return list(merged.values())
