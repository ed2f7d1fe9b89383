"""The machine-readable result of a bisect: what `--json` prints and `result.json` keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from poolbisect.bisection.lines import digest
from poolbisect.culprit.outcome import BisectOutcome, Confirmation, Confirmed, Seen
from poolbisect.culprit.steps import Step
from poolbisect.evidence.intervals import wilson
from poolbisect.history.ranges import CommitRange, Entry
from poolbisect.reporting.blame_words import attribution_words
from poolbisect.timeline.attribution import Attribution

SCHEMA = "poolbisect.bisect/1"
_SMALLEST_WEIGHT = 0.0005


def bisect_document(outcome: BisectOutcome, folder: Path) -> dict[str, Any]:
    """The bisect as one JSON-ready object; docs/bisect.md describes every field."""
    request, history, result = outcome.request, outcome.history, outcome.result
    entries = history.entries
    seen = outcome.timeline
    older, newer = 0, len(entries) - 1
    good, bad = (older, newer) if request.find.value == "introduced" else (newer, older)
    culprit = merge = None
    named = outcome.innermost
    if named.found and named.result is not None and named.result.culprit is not None:
        culprit = {**_at(named, named.result.culprit), "remark": named.remark or None}
        if named is not outcome and result is not None and result.culprit is not None:
            merge = _at(outcome, result.culprit)
    suspects = range(0)
    if result is not None and result.suspects is not None and culprit is None:
        suspects = range(result.suspects[0], result.suspects[1] + 1)
    others = result.others if result is not None else ()
    spent = result.spent if result is not None else None
    observed = [step.observation for step in outcome.steps]
    return {
        "schema": SCHEMA,
        "verdict": outcome.verdict,
        "exit_code": outcome.exit_code,
        "reason": result.reason if result is not None else "interrupted; go on with --resume",
        "culprit": culprit,
        "merge": merge,
        "suspects": [_at(outcome, position) for position in suspects],
        "others": [[_at(outcome, first), _at(outcome, last)] for first, last in others],
        "find": request.find.value,
        "confidence": named.result.confidence if named.result is not None else None,
        "asked_confidence": outcome.plan.confidence,
        "probes": len(observed),
        "questions": sum(one.asked for one in observed if one.verdict is None),
        "switches": spent.switches if spent is not None else None,
        "confirmation": _confirmation(named.confirmation),
        "attribution": _attribution(named),
        "report": str(folder),
        "partial": outcome.interrupted,
        "probe": request.probe,
        "scenario": request.scenario.name if request.scenario else None,
        "symptom": request.scenario.symptom.value if request.scenario else None,
        "history": history.kind,
        "repository": request.repository,
        "good": _at(outcome, good),
        "bad": _at(outcome, bad),
        "commits": len(entries),
        "range_digest": digest([entry.name for entry in entries]),
        "started": outcome.started.isoformat(timespec="seconds"),
        "seconds": round(outcome.seconds, 3),
        "steps": [_step(outcome, step) for step in outcome.steps],
        "posterior": [
            {"position": position, **_at(outcome, position), "weight": weight}
            for position, weight in enumerate(outcome.weights)
            if weight >= _SMALLEST_WEIGHT
        ],
        "notes": list(dict.fromkeys((*outcome.notes, *named.notes))),
        "transitions": seen["transitions"] if seen else [],
        "untestable": seen["untestable"] if seen else 0,
        "inside": _inside(outcome, folder),
        "command": ["poolbisect", *outcome.command],
        "environment": dict(outcome.environment),
    }


def encode(document: dict[str, Any]) -> bytes:
    """Indented JSON, keys in the order given."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _at(outcome: BisectOutcome, position: int) -> dict[str, Any]:
    found = entry_document(outcome.history.kind, outcome.history.entries[position])
    if isinstance(outcome.history, CommitRange):
        commit = outcome.history.commits[position]
        found["author_date"] = commit.author_date.isoformat()
    return found


def entry_document(kind: str, entry: Entry) -> dict[str, Any]:
    """A position for programs: under `commit` or `release` its full name."""
    return {
        kind: entry.name,
        "short": entry.short,
        "title": entry.title,
        "date": None if entry.date is None else entry.date.isoformat(),
        "author_date": None,
    }


def _step(outcome: BisectOutcome, step: Step) -> dict[str, Any]:
    seen = step.observation
    evidence = outcome.evidence.get(step.number, {})
    scored = seen.verdict is None and seen.asked > 0
    interval = wilson(seen.correct, seen.asked) if scored else None
    log = evidence.get("log")
    return {
        "number": step.number,
        "position": step.position,
        "entry": _at(outcome, step.position),
        "reason": step.reason,
        "questions": step.questions,
        "asked": seen.asked if scored else None,
        "correct": seen.correct if scored else None,
        "accuracy": seen.correct / seen.asked if scored else None,
        "interval": [interval.low, interval.high] if interval else None,
        "ending": seen.ending.value,
        "verdict": seen.verdict.value if seen.verdict else None,
        "note": seen.note or evidence.get("detail") or "",
        "accept_length": evidence.get("accept_length"),
        "low": step.low,
        "high": step.high,
        "remaining": step.remaining,
        "mass": step.mass,
        "seconds": round(seen.seconds, 3),
        "attempt": evidence.get("folder"),
        "log": f"{evidence.get('folder')}/{log}" if log else None,
        "provenance": evidence.get("provenance"),
    }


def _confirmation(found: Confirmation | None) -> dict[str, Any] | None:
    if found is None:
        return None

    def words(one: Confirmed) -> dict[str, Any]:
        return {
            "verdict": None if one.seen is Seen.NOT_TRIED else one.seen.value,
            "text": one.text,
        }

    return {
        "parent": words(found.parent),
        "culprit": words(found.culprit),
        "revert": words(found.revert),
    }


def _attribution(outcome: BisectOutcome) -> dict[str, Any] | None:
    found: Attribution | None = outcome.attribution
    if found is None:
        return None
    since = found.since
    return {
        "buffer": found.buffer,
        "pool": found.pool.value,
        "file": found.file,
        "line": found.line,
        "rows": found.rows,
        "index": found.index,
        "last": found.last,
        "space": found.space,
        "since": None if since is None else entry_document(outcome.history.kind, since),
        "detail": found.detail,
        "text": attribution_words(found),
    }


def _inside(outcome: BisectOutcome, folder: Path) -> dict[str, Any] | None:
    inside = outcome.inside
    if inside is None:
        return None
    found = None if inside.outcome is None else bisect_document(inside.outcome, folder / "inside")
    return {"text": inside.text, "bisect": found}
