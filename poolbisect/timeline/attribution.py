"""Which buffer is at fault at a position: its file and line, its rows, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poolbisect.history.ranges import CommitRange, Entry, HistoryRange, entry_of
from poolbisect.history.written_since import written_since
from poolbisect.probes.facets import (
    REQ_TO_TOKEN,
    BufferState,
    Condition,
    ContractState,
    PoolKind,
)

REQUEST_SLOT = "request slot"


@dataclass(frozen=True, slots=True)
class Attribution:
    """One buffer at fault: indices of `space` run to `last`, and from `index` on no row exists.

    `since`: the commit, or release, from which on the sources hold the allocation as it stands at
    `file` and `line`, which can be long before it was exposed. `detail`: what was raised, where
    the code crashes instead.
    """

    pool: PoolKind
    buffer: str
    file: str
    line: int
    rows: int | None
    index: int | None
    last: int | None
    space: str
    since: Entry | None
    detail: str = ""


def attribution_at(
    history: HistoryRange,
    position: int,
    state: ContractState,
    *,
    only: Iterable[tuple[PoolKind, str]] = (),
    earlier: Sequence[ContractState] = (),
) -> tuple[Attribution, ...]:
    """The buffers at fault in `state`, which is that of `position`.

    `only`: the pools and buffers to look at, by default all. `earlier`: the states at positions 0
    up to this one, from which releases tell since when, unknown without them; commits are asked
    themselves.
    """
    chosen = frozenset(only)
    found = []
    for kind, pool in state.pools.items():
        if pool.condition is Condition.CRASHED and (not chosen or (kind, REQ_TO_TOKEN) in chosen):
            found.append(
                Attribution(
                    kind, REQ_TO_TOKEN, "", 0, None, None, None, REQUEST_SLOT, None, pool.detail
                )
            )
        for name, buffer in pool.buffers.items():
            if buffer.condition.is_fault and (not chosen or (kind, name) in chosen):
                since = _since(history, position, kind, name, buffer, earlier)
                found.append(
                    Attribution(
                        kind,
                        name,
                        buffer.file,
                        buffer.line,
                        buffer.rows,
                        buffer.rows if buffer.condition is Condition.SHORT else None,
                        buffer.last,
                        REQUEST_SLOT,
                        since,
                        buffer.detail,
                    )
                )
    return tuple(found)


def _since(
    history: HistoryRange,
    position: int,
    kind: PoolKind,
    name: str,
    buffer: BufferState,
    earlier: Sequence[ContractState],
) -> Entry | None:
    if isinstance(history, CommitRange):
        if not buffer.file:
            return None
        commit = history.commits[position]
        found = written_since(history.repository, commit, buffer.file, buffer.line)
        return None if found is None else entry_of(found)
    if not earlier:
        return None
    first = position
    for index in range(min(position, len(earlier)) - 1, -1, -1):
        pool = earlier[index].pools.get(kind)
        older = None if pool is None else pool.buffers.get(name)
        if older is None or older.rows is None or older.expression != buffer.expression:
            break
        first = index
    # At the older end nothing is known of the releases before it.
    return history.entries[first] if first else None
