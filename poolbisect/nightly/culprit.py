"""From a new finding of a repository subject to the commit that did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolbisect.culprit import workflow
from poolbisect.culprit.outcome import BisectOutcome, Seen
from poolbisect.culprit.probes import open_probe
from poolbisect.culprit.request import BisectRequest
from poolbisect.culprit.session import Session
from poolbisect.culprit.watcher import Watcher
from poolbisect.history.ranges import CommitRange, commit_range
from poolbisect.history.repository import open_repository
from poolbisect.reporting import bisect_json
from poolbisect.reporting.folder import new_folder
from poolbisect.scenario import Scenario
from poolbisect.timeline import Kind, Timeline, Transition, plans_for, timeline
from poolbisect.timeline.document import timeline_document
from poolbisect.timeline.words import change, subject

_BREACHES = (Kind.INTRODUCED, Kind.REINTRODUCED)


@dataclass(frozen=True, slots=True)
class Culprit:
    """What a search came to. `entry` is None where no single commit is named.

    `confirmed`: measured again, the commit before being good and this one bad; a contract timeline
    alone never is. `transitions` as in `timeline --json`; `report` the bisect's folder.
    """

    entry: dict[str, Any] | None
    text: str
    confirmed: bool = False
    transitions: tuple[dict[str, Any], ...] = ()
    report: Path | None = None


def find_culprit(
    repository: Path,
    good: str,
    bad: str,
    scenario: Scenario,
    *,
    bisect: Path | None = None,
    command: Sequence[str] = (),
) -> Culprit:
    """Look for what a scenario's finding came with, between the last good commit and tonight's.

    The contract timeline of the scenario's buffers first; with `bisect`, a folder of reports, then
    a bisect that measures commits, starting where the timeline points, and confirms.

    Raises:
        UsageError: the commits are not on one line of history, or one is missing.
        InfrastructureError: the repository cannot be read, or no child process can be started.
    """
    with open_repository(repository) as opened:
        history = commit_range(opened, good, bad)
        seen = timeline(history, plans_for(scenario))
        named = _named_by_contract(history, seen)
        if bisect is None:
            return named
        return _bisected(repository, history, scenario, named, bisect, command)


def standing_breaches(found: Timeline) -> list[Transition]:
    """Breaches of the contract in the range that nothing later in it mended, oldest first."""
    standing: dict[tuple[object, ...], Transition] = {}
    for one in found.transitions:
        for pool in one.pools:
            key = (pool, one.buffer, one.aspect)
            if one.kind in _BREACHES:
                standing[key] = one
            elif one.kind is Kind.FIXED:
                standing.pop(key, None)
    return sorted(dict.fromkeys(standing.values()), key=lambda one: one.position)


def _named_by_contract(history: CommitRange, seen: Timeline) -> Culprit:
    transitions = tuple(timeline_document(seen)["transitions"])
    where = f"{history.commits[0].short}..{history.commits[-1].short}, {len(history)} commits"
    breaches = standing_breaches(seen)
    positions = sorted({one.position for one in breaches})
    if not positions:
        text = (
            f"no buffer of this scenario became short in {where}: the contract does not explain "
            "it; measure the commits with poolbisect bisect --probe miniature"
        )
        return Culprit(None, text, transitions=transitions)
    said = "; ".join(
        f"{history.commits[one.position].short} {subject(one)}: {change(one)}" for one in breaches
    )
    if len(positions) > 1:
        text = f"{len(positions)} commits broke the contract in {where}: {said}"
        return Culprit(None, text, transitions=transitions)
    entry = _entry(history, positions[0])
    return Culprit(entry, f"the contract broke in {where}: {said}", transitions=transitions)


def _entry(history: CommitRange, position: int) -> dict[str, Any]:
    commit = history.commits[position]
    entry = bisect_json.entry_document("commit", history.entries[position])
    return entry | {"author_date": commit.author_date.isoformat(), "remark": None}


def _bisected(
    repository: Path,
    history: CommitRange,
    scenario: Scenario,
    named: Culprit,
    out: Path,
    command: Sequence[str],
) -> Culprit:
    request = BisectRequest(
        history="commit",
        good=history.commits[0].sha,
        bad=history.commits[-1].sha,
        repository=str(repository.resolve()),
        scenario=scenario,
        probe="miniature",
        timeline=True,
        command=tuple(command),
    )
    folder = new_folder(out, "bisect")
    outcome = workflow.start(request, history, Session(folder), open_probe, Watcher())
    document = bisect_json.bisect_document(outcome, folder)
    (folder / "result.json").write_bytes(bisect_json.encode(document) + b"\n")
    if outcome.result is None:
        raise KeyboardInterrupt
    confirmed = _confirmed(outcome)
    entry = document["culprit"]
    if entry is None:
        text = f"{named.text}; the bisect names none ({outcome.verdict}): {document['reason']}"
    else:
        word = "confirmed" if confirmed else "not confirmed"
        text = f"bisect: {entry['short']} ({word}); {named.text}"
    return Culprit(entry, text, confirmed, named.transitions, folder)


def _confirmed(outcome: BisectOutcome) -> bool:
    found = outcome.confirmation
    return found is not None and (found.parent.seen, found.culprit.seen) == (Seen.GOOD, Seen.BAD)
