"""Transitions in words: what a state is, and what changed."""

from __future__ import annotations

from poolbisect.probes.facets import REQ_TO_TOKEN, BufferState, Condition, PoolState
from poolbisect.timeline.transitions import State, Transition


def subject(transition: Transition) -> str:
    """What changed: a buffer, or an aspect of the pool."""
    if transition.buffer != REQ_TO_TOKEN:
        return transition.buffer
    return f"{transition.buffer}: {transition.aspect}"


def change(transition: Transition) -> str:
    """Before and after, and whether the change may be a little older."""
    words = f"{state(transition.before)} → {state(transition.after)}"
    if transition.unknown_before:
        count = transition.unknown_before
        words += f" (or with one of {count} untestable before it)"
    return words


def state(found: State | None) -> str:
    """One state of a buffer, a pool or an aspect of one."""
    match found:
        case None:
            return "none"
        case str():
            return found
        case PoolState(condition=Condition.OK):
            return "there"
        case PoolState(condition=Condition.ABSENT):
            return "no such pool"
        case PoolState() | BufferState(condition=Condition.CRASHED):
            return f"crashes: {found.detail}"
        case BufferState(condition=Condition.ABSENT):
            return "no such buffer"
        case BufferState():
            rows = f"{found.rows} rows, slots to {found.last}"
            return f"{rows}: short by {found.missing}" if found.missing else rows
