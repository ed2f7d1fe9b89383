"""The workflow of `poolbisect bisect`: look where to begin, probe and search, confirm, explain."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from poolbisect.bisection.journal import Journal
from poolbisect.bisection.outcome import Ending, Find, Kind, Result
from poolbisect.bisection.plan import Budget
from poolbisect.bisection.search import Search
from poolbisect.culprit.blame import explain
from poolbisect.culprit.confirmation import confirm
from poolbisect.culprit.decisions import Decisions, take
from poolbisect.culprit.interface import HistoryProbe, Watch
from poolbisect.culprit.outcome import BisectOutcome, Inside
from poolbisect.culprit.provenance import environment
from poolbisect.culprit.request import BisectRequest
from poolbisect.culprit.session import REQUEST, Session, now
from poolbisect.culprit.steps import Step, step_after, steps
from poolbisect.culprit.watcher import Watcher
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.repository import Commit
from poolbisect.timeline import Timeline, plans_for, prior_from_timeline, timeline
from poolbisect.timeline.transitions import Kind as Change

_MOST_SUSPECTS = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What this start of a bisect was asked beside the session's request."""

    command: tuple[str, ...]
    confidence: float = 0.99
    budget: Budget = field(default_factory=Budget)
    decisions: Decisions = field(default_factory=Decisions)


OpenProbe = Callable[[BisectRequest, HistoryRange, Path, Watch], HistoryProbe]
"""Opens the probe of a request on a history, with a folder for what it keeps."""


def start(
    request: BisectRequest,
    history: HistoryRange,
    session: Session,
    open_probe: OpenProbe,
    asked: Asked,
    watcher: Watcher,
) -> BisectOutcome:
    """A new bisect. As `go_on` for what it raises."""
    with closing(open_probe(request, history, session.folder, watcher.says)) as probe:
        seen = _survey(request, history, watcher)
        weights = None if seen is None else prior_from_timeline(seen, find=request.find.value)
        plan = replace(
            probe.plan(),
            find=request.find,
            confidence=asked.confidence,
            budget=asked.budget,
            weights=weights,
        )
        names = [entry.name for entry in history.entries]
        decisions = asked.decisions
        if seen is not None:
            suspects = (*decisions.suspects, *_suspects(seen, request))
            decisions = replace(decisions, suspects=suspects)
        with session.start(request, names, plan, asked.command) as journal:
            watcher.planned(history, plan, ())
            take(journal, history, decisions)
            outcome = _run(request, history, session, journal, probe, watcher, seen, [])
    return _look_inside(outcome, session, open_probe, asked, watcher)


def go_on(
    history: HistoryRange,
    session: Session,
    open_probe: OpenProbe,
    asked: Asked,
    watcher: Watcher,
) -> BisectOutcome:
    """A bisect that was left, from its journal on; a budget holds for the start it is given to.

    Raises:
        UsageError: the session is of another history, or damaged; a revision to skip, forget or
            suspect is outside the range; the probe's options are wrong.
        InfrastructureError: the repository or the package index cannot be read.
    """
    request = session.request()
    names = [entry.name for entry in history.entries]
    with (
        closing(open_probe(request, history, session.folder, watcher.says)) as probe,
        session.resume(names) as journal,
    ):
        search = journal.search
        plan = replace(search.plan, budget=asked.budget)
        journal.search = Search(names, plan, search.events)
        taken = steps(session.record(), names)
        watcher.planned(history, journal.search.plan, taken)
        take(journal, history, asked.decisions)
        outcome = _run(request, history, session, journal, probe, watcher, None, taken)
    return _look_inside(outcome, session, open_probe, asked, watcher)


def _look_inside(
    outcome: BisectOutcome,
    session: Session,
    open_probe: OpenProbe,
    asked: Asked,
    watcher: Watcher,
) -> BisectOutcome:
    """If the culprit is a merge and that was asked for: bisect the branch it brings in.

    The branch is searched from where it left the main line to its tip, along its own first
    parents; inside another merge on it the same is done again.
    """
    history, request = outcome.history, outcome.request
    culprit = outcome.result.culprit if outcome.result is not None else None
    if not request.inside or culprit is None or not isinstance(history, CommitRange):
        return outcome
    merge = history.commits[culprit]
    if len(merge.parents) < 2:
        return outcome
    main, tip = (history.repository.commit(parent) for parent in merge.parents[:2])
    base = history.repository.merge_base(main, tip)
    if base is None or base.sha == tip.sha:
        return replace(outcome, inside=Inside(None, f"{merge.short} brings in no line of commits."))
    introduced = request.find is Find.INTRODUCED
    good, bad = (base.sha, tip.sha) if introduced else (tip.sha, base.sha)
    branch = msgspec.structs.replace(request, good=good, bad=bad)
    inner = Session(session.folder / "inside")
    if (inner.folder / REQUEST).exists():
        found = go_on(branch.open(), inner, open_probe, Asked(asked.command), watcher)
    else:
        asked = replace(asked, decisions=Decisions())
        found = start(branch, branch.open(), inner, open_probe, asked, watcher)
    return replace(outcome, inside=Inside(found, _inside_words(merge, found)))


def _inside_words(merge: Commit, found: BisectOutcome) -> str:
    result = found.result
    if result is None:
        return f"The search inside {merge.short} was interrupted."
    if found.found:
        return f"Merged by {merge}."
    if result.kind in (Kind.BOTH_GOOD, Kind.BOTH_BAD):
        return (
            f"{merge.short} is a merge, and the branch it brings in does not have the step by "
            f"itself ({result.reason}): it comes from bringing the two together."
        )
    return f"{merge.short} is a merge; which of its commits it is cannot be told: {result.reason}."


def _survey(request: BisectRequest, history: HistoryRange, watcher: Watcher) -> Timeline | None:
    """The contract timeline, where it is to say where to look first."""
    if not request.timeline or request.scenario is None:
        return None
    found = timeline(history, plans_for(request.scenario), watch=watcher.survey())
    watcher.surveyed(found)
    return found


def _suspects(seen: Timeline, request: BisectRequest) -> tuple[str, ...]:
    """Where the timeline has one or two answers they are measured first, each after its parent."""
    wanted = {Change.FIXED} if request.find is Find.FIXED else set(Change) - {Change.FIXED}
    wanted -= {Change.CHANGED}
    places = sorted({one.position for one in seen.transitions if one.kind in wanted} - {0})
    if not 0 < len(places) <= _MOST_SUSPECTS:
        return ()
    return tuple(seen.entry(position).name for position in places)


def _run(
    request: BisectRequest,
    history: HistoryRange,
    session: Session,
    journal: Journal,
    probe: HistoryProbe,
    watcher: Watcher,
    seen: Timeline | None,
    taken: list[Step],
) -> BisectOutcome:
    """`taken`: the steps so far, to which those of this start are added."""
    clock, started = time.perf_counter(), datetime.now(UTC)
    try:
        result: Result | None = _search(history, session, journal, probe, watcher, taken)
    except KeyboardInterrupt:
        result = None
    outcome = BisectOutcome(
        request=request,
        history=history,
        plan=journal.search.plan,
        result=None if result is None else _with_notes(result, history, taken),
        steps=tuple(taken),
        weights=tuple(float(weight) for weight in journal.search.distribution()),
        evidence={one.number: session.evidence(one.attempt) for one in taken if one.attempt},
        command=tuple(session.record().header.command),
        started=started,
        seconds=time.perf_counter() - clock,
        timeline=seen,
        environment=environment(),
    )
    if not outcome.found or result is None or result.culprit is None:
        return outcome
    watcher.confirming(result.culprit)
    confirmation = confirm(
        history, probe, taken, result.culprit, request.find, session.attempt, watcher.says
    )
    blamed = explain(request, history, result.culprit, seen)
    return replace(
        outcome,
        confirmation=confirmation,
        attribution=blamed.attribution,
        remark=blamed.remark,
        seconds=time.perf_counter() - clock,
    )


def _search(
    history: HistoryRange,
    session: Session,
    journal: Journal,
    probe: HistoryProbe,
    watcher: Watcher,
    taken: list[Step],
) -> Result:
    """Probe until there is an answer; every probe is in the journal before the next begins."""
    entries = history.entries
    while True:
        request = journal.search.next()
        if isinstance(request, Result):
            return request
        watcher.probing(request.position, request.questions, request.reason)
        attempt = session.attempt(entries[request.position].short)
        journal.started(request, now(), attempt.number)
        clock = time.perf_counter()
        probed = probe.probe(request, attempt, watcher.says)
        observation = probed.observation
        if not observation.seconds:
            observation = replace(observation, seconds=time.perf_counter() - clock)
        session.keep_evidence(attempt, probed.evidence)
        journal.ended(request.position, observation, now())
        taken.append(
            step_after(
                journal.search,
                len(taken) + 1,
                request.position,
                observation,
                request.reason,
                request.questions,
                attempt.number,
            )
        )
        watcher.step(taken[-1])


def _with_notes(result: Result, history: HistoryRange, taken: Sequence[Step]) -> Result:
    """The ends' own words, where both are alike or cannot be measured."""
    if result.kind not in (Kind.BOTH_GOOD, Kind.BOTH_BAD, Kind.UNTESTABLE, Kind.INFRASTRUCTURE):
        return result
    notes = []
    for position in (0, len(history) - 1):
        seen = [step.observation for step in taken if step.position == position]
        said = [one.note or _ending(one.ending) for one in seen if one.note or _ending(one.ending)]
        if said:
            notes.append(f"{history.entries[position].short}: {said[-1].rstrip('.')}")
    return replace(result, reason="; ".join([result.reason, *notes])) if notes else result


def _ending(ending: Ending) -> str:
    return "" if ending is Ending.MEASURED else ending.value.replace("_", " ")
