"""The workflow of `poolbisect bisect`: look where to begin, probe and search, confirm, explain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.bisection.journal import Journal
from poolbisect.bisection.outcome import Find, Kind, Result, Spent
from poolbisect.bisection.plan import Budget
from poolbisect.bisection.search import Search
from poolbisect.culprit.blame import explain
from poolbisect.culprit.branches import branches
from poolbisect.culprit.confirmation import confirm
from poolbisect.culprit.decisions import Decisions, Resolved, resolve, resolve_for_branch, take
from poolbisect.culprit.interface import HistoryProbe, Watch
from poolbisect.culprit.outcome import BisectOutcome, Inside
from poolbisect.culprit.request import BisectRequest
from poolbisect.culprit.search_loop import search_on
from poolbisect.culprit.session import REQUEST, Session
from poolbisect.culprit.steps import Step, steps
from poolbisect.culprit.watcher import Watcher
from poolbisect.errors import PoolbisectError
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.repository import Commit
from poolbisect.own_environment import own_environment
from poolbisect.timeline import Timeline, plans_for, prior_from_timeline, timeline
from poolbisect.timeline.document import timeline_document
from poolbisect.timeline.transitions import Kind as Change

_MOST_SUSPECTS = 2

OpenProbe = Callable[[BisectRequest, HistoryRange, Path, Watch], HistoryProbe]
"""Opens the probe of a request on a history, with a folder for what it keeps."""


def start(
    request: BisectRequest,
    history: HistoryRange,
    session: Session,
    open_probe: OpenProbe,
    watcher: Watcher,
    budget: Budget | None = None,
) -> BisectOutcome:
    """A new bisect of a request whose range is `history`, see `pinned`. As `go_on` otherwise."""
    decided = _resolved(request, history, Decisions(request.skips, (), request.suspects))
    session.keep(request)
    return _work(request, history, session, open_probe, watcher, budget or Budget(), decided)


def go_on(
    session: Session,
    open_probe: OpenProbe,
    watcher: Watcher,
    budget: Budget | None = None,
    decisions: Decisions | None = None,
    repository: Path | None = None,
) -> BisectOutcome:
    """A bisect that was left, wherever that was. A budget holds for the start it is given to.

    `repository`: where the clone is now, if it has moved.

    Raises:
        UsageError: the session is of another history, or damaged; a revision to skip, forget or
            suspect is outside the range; the probe's options are wrong.
        InfrastructureError: the repository or the package index cannot be read.
    """
    request = session.request()
    if repository is not None:
        request = msgspec.structs.replace(request, repository=str(repository.resolve()))
    history = request.open()
    decided = _resolved(request, history, decisions or Decisions())
    deeper = decided.deeper
    if repository is not None or deeper.skips or deeper.suspects:
        # A branch that has not been looked into yet begins with these.
        session.keep(
            msgspec.structs.replace(
                request,
                skips=(*request.skips, *deeper.skips),
                suspects=(*request.suspects, *deeper.suspects),
            )
        )
    return _work(request, history, session, open_probe, watcher, budget or Budget(), decided)


def _work(
    request: BisectRequest,
    history: HistoryRange,
    session: Session,
    open_probe: OpenProbe,
    watcher: Watcher,
    budget: Budget,
    decided: Resolved,
) -> BisectOutcome:
    with (
        closing(open_probe(request, history, session.folder, watcher.says)) as probe,
        _journal(request, history, session, probe, watcher, budget) as (journal, taken, seen),
    ):
        spent = journal.search.spent
        take(journal, decided)
        outcome = _run(request, history, session, journal, probe, watcher, taken, seen)
        used = _used(journal.search.spent, spent)
    try:
        return _look_inside(outcome, session, open_probe, watcher, _left(budget, used), decided)
    except KeyboardInterrupt:
        return replace(outcome, stopped=True)
    except PoolbisectError as error:
        return replace(outcome, inside=Inside(None, f"It was not looked into: {error}"))


def _resolved(request: BisectRequest, history: HistoryRange, decisions: Decisions) -> Resolved:
    if request.branch:
        return resolve_for_branch(history, decisions)
    return resolve(history, decisions, inside=request.inside)


@contextmanager
def _journal(
    request: BisectRequest,
    history: HistoryRange,
    session: Session,
    probe: HistoryProbe,
    watcher: Watcher,
    budget: Budget,
) -> Iterator[tuple[Journal, list[Step], Timeline | None]]:
    """The journal, begun or resumed, the steps in it, and the timeline where it was taken now."""
    names = [entry.name for entry in history.entries]
    if session.has_begun:
        with session.resume(names) as journal:
            search = journal.search
            plan = replace(search.plan, budget=_on_top(budget, search.spent))
            journal.search = Search(names, plan, search.events)
            taken = steps(session.record(), names)
            watcher.planned(history, plan, taken)
            yield journal, taken, None
        return
    seen = _survey(request, history, session, watcher)
    plan = replace(
        probe.plan(),
        find=request.find,
        confidence=request.confidence,
        budget=budget,
        weights=None if seen is None else prior_from_timeline(seen, find=request.find.value),
    )
    with session.begin(names, plan, request.command) as journal:
        watcher.planned(history, plan, ())
        texts = Decisions(request.skips, (), request.suspects)
        at_start = _resolved(request, history, texts)
        suspects = () if seen is None else _suspects(seen, request)
        take(journal, replace(at_start, suspects=(*at_start.suspects, *suspects)))
        yield journal, [], seen


def _survey(
    request: BisectRequest, history: HistoryRange, session: Session, watcher: Watcher
) -> Timeline | None:
    """The contract timeline, where it is to say where to look first."""
    if not request.timeline or request.scenario is None:
        return None
    found = timeline(history, plans_for(request.scenario), watch=watcher.survey())
    session.keep_timeline(timeline_document(found))
    watcher.surveyed(found)
    return found


def _suspects(seen: Timeline, request: BisectRequest) -> tuple[int, ...]:
    """Where the timeline has one or two answers they are measured first, each after its parent."""
    wanted = {Change.FIXED} if request.find is Find.FIXED else set(Change) - {Change.FIXED}
    wanted -= {Change.CHANGED}
    places = sorted({one.position for one in seen.transitions if one.kind in wanted} - {0})
    return tuple(places) if len(places) <= _MOST_SUSPECTS else ()


def _run(
    request: BisectRequest,
    history: HistoryRange,
    session: Session,
    journal: Journal,
    probe: HistoryProbe,
    watcher: Watcher,
    taken: list[Step],
    seen: Timeline | None,
) -> BisectOutcome:
    """Search, then confirm and explain what was found."""
    clock, before = time.perf_counter(), sum(step.observation.seconds for step in taken)
    try:
        result: Result | None = search_on(history, session, journal, probe, watcher, taken)
    except KeyboardInterrupt:
        result = None
    header = session.record().header
    outcome = BisectOutcome(
        request=request,
        history=history,
        plan=journal.search.plan,
        result=result,
        steps=tuple(taken),
        weights=tuple(float(weight) for weight in journal.search.distribution()),
        evidence={one.number: session.evidence(one.attempt) for one in taken if one.attempt},
        command=header.command,
        started=datetime.fromisoformat(header.at),
        seconds=before + time.perf_counter() - clock,
        timeline=session.timeline(),
        environment=own_environment(),
    )
    if result is None or not outcome.found or result.culprit is None:
        return outcome
    more: dict[str, Any] = {}
    try:
        watcher.confirming(result.culprit)
        more["confirmation"] = confirm(
            history, probe, taken, result.culprit, request.find, session.attempt, watcher.says
        )
        blamed = explain(request, history, result.culprit, seen)
        more |= {"attribution": blamed.attribution, "remark": blamed.remark}
    except KeyboardInterrupt:
        more["stopped"] = True
    return replace(outcome, **more, seconds=before + time.perf_counter() - clock)


def _look_inside(
    outcome: BisectOutcome,
    session: Session,
    open_probe: OpenProbe,
    watcher: Watcher,
    budget: Budget | None,
    decided: Resolved,
) -> BisectOutcome:
    """If the culprit is a merge and that was asked for: bisect each branch it brings in.

    Inside another merge on a branch the same is done again.
    """
    history, request = outcome.history, outcome.request
    culprit = outcome.result.culprit if outcome.result is not None else None
    if outcome.stopped or not request.inside or not isinstance(history, CommitRange):
        return outcome
    if culprit is None or not outcome.found or len(history.commits[culprit].parents) < 2:
        return outcome
    merge = history.commits[culprit]
    found: BisectOutcome | None = None
    lines = branches(history.repository, merge)
    for number, line in enumerate(lines, start=1):
        if budget is None:
            text = f"{merge.short} is a merge; the budget was used up before looking into it."
            return replace(outcome, inside=Inside(found, text))
        introduced = request.find is Find.INTRODUCED
        good, bad = (line.older, line.tip) if introduced else (line.tip, line.older)
        inner = Session(session.folder / ("inside" if number == 1 else f"inside-{number}"))
        if (inner.folder / REQUEST).exists():
            found = go_on(inner, open_probe, watcher, budget, decided.deeper)
        else:
            branch = msgspec.structs.replace(
                request,
                good=good.sha,
                bad=bad.sha,
                skips=(*request.skips, *decided.deeper.skips),
                suspects=(*request.suspects, *decided.deeper.suspects),
                branch=True,
                note="",
            )
            found = start(branch, branch.open(), inner, open_probe, watcher, budget)
        if found.found or found.interrupted:
            break
        if found.result is not None and found.result.kind is not Kind.BOTH_GOOD:
            break
    return replace(outcome, inside=Inside(found, _inside_words(merge, found, len(lines))))


def _inside_words(merge: Commit, found: BisectOutcome | None, branches: int) -> str:
    if found is None:
        return f"{merge.short} is a merge that brings in no line of commits of its own."
    result = found.result
    if result is None or found.interrupted:
        return f"The search inside {merge.short} was interrupted."
    if found.found:
        return f"Merged by {merge}."
    unchanged = Kind.BOTH_GOOD if found.request.find is Find.INTRODUCED else Kind.BOTH_BAD
    if result.kind is unchanged:
        what, two = ("its branch is", "the two") if branches == 1 else ("its branches are", "them")
        return (
            f"{merge.short} is a merge, and {what} without the step ({result.reason}): it comes "
            f"from bringing {two} together."
        )
    return f"{merge.short} is a merge; which of its commits it is cannot be told: {result.reason}."


def _on_top(budget: Budget, spent: Spent) -> Budget:
    """A budget for what is done from now on."""
    return Budget(
        None if budget.probes is None else budget.probes + spent.probes,
        None if budget.questions is None else budget.questions + spent.questions,
        None if budget.seconds is None else budget.seconds + spent.seconds,
    )


def _used(after: Spent, before: Spent) -> Spent:
    return Spent(
        after.probes - before.probes,
        after.questions - before.questions,
        after.switches - before.switches,
        after.seconds - before.seconds,
    )


def _left(budget: Budget, used: Spent) -> Budget | None:
    """What a budget has left, None if nothing."""
    limits = (budget.probes, budget.questions, budget.seconds)
    left = [
        None if limit is None else limit - taken
        for limit, taken in zip(limits, (used.probes, used.questions, used.seconds), strict=True)
    ]
    if any(one is not None and one <= 0 for one in left):
        return None
    return Budget(*left)  # type: ignore[arg-type]
