"""The machine-readable timeline: what `poolbisect timeline --json` prints; see docs/timeline.md."""

from __future__ import annotations

from typing import Any

import msgspec

from poolbisect.probes.facets import BufferState, PoolState
from poolbisect.timeline.transitions import State, Transition
from poolbisect.timeline.words import change, subject
from poolbisect.timeline.workflow import Timeline

SCHEMA = "poolbisect.timeline/1"


def timeline_document(timeline: Timeline) -> dict[str, Any]:
    """The timeline as one JSON-ready object."""
    entries = timeline.history.entries
    return {
        "schema": SCHEMA,
        "history": timeline.history.kind,
        "good": entries[0].name,
        "bad": entries[-1].name,
        "commits": len(entries),
        "probed": timeline.probed,
        "untestable": len(timeline.untestable),
        "untestable_reasons": [
            {timeline.history.kind: entries[position].name, "reason": reason}
            for position, reason in timeline.untestable.items()
        ],
        "seconds": round(timeline.seconds, 3),
        "pools": [msgspec.to_builtins(plan) for plan in timeline.plans],
        "transitions": [_transition(timeline, one) for one in timeline.transitions],
    }


def encode(document: dict[str, Any]) -> bytes:
    """Indented JSON, keys in the order given."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _transition(timeline: Timeline, transition: Transition) -> dict[str, Any]:
    entry = timeline.entry(transition.position)
    return {
        timeline.history.kind: entry.name,
        "date": None if entry.date is None else entry.date.isoformat(),
        "title": entry.title,
        "kind": transition.kind.value,
        "buffer": transition.buffer,
        "aspect": transition.aspect,
        "pools": [kind.value for kind in transition.pools],
        "before": _state(transition, transition.before),
        "after": _state(transition, transition.after),
        "unknown_before": transition.unknown_before,
        "text": f"{subject(transition)}: {change(transition)}",
    }


def _state(transition: Transition, state: State | None) -> dict[str, Any] | None:
    match state:
        case None:
            return None
        case str():
            return {transition.aspect: state}
        case PoolState():
            return {"condition": state.condition.value, "detail": state.detail}
        case BufferState():
            return {
                "condition": state.condition.value,
                "rows": state.rows,
                "largest_slot": state.last,
                "missing": state.missing,
                "expression": state.expression,
                "file": state.file,
                "line": state.line,
                "detail": state.detail,
            }
