"""Ask the search, run the probe, write it down; until there is an answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from poolbisect.bisection.journal import Journal
from poolbisect.bisection.outcome import Ending, Kind, Observation, Result
from poolbisect.culprit.interface import HistoryProbe
from poolbisect.culprit.session import Session, now
from poolbisect.culprit.steps import Step, step_after
from poolbisect.culprit.watcher import Watcher
from poolbisect.history.ranges import HistoryRange

_ABOUT_ENDS = {
    *(Kind.BOTH_GOOD, Kind.BOTH_BAD, Kind.REVERSED),
    *(Kind.UNTESTABLE, Kind.INFRASTRUCTURE),
}


def search_on(
    history: HistoryRange,
    session: Session,
    journal: Journal,
    probe: HistoryProbe,
    watcher: Watcher,
    taken: list[Step],
) -> Result:
    """The answer; steps are added to `taken`. Every probe is in the journal before the next."""
    entries = history.entries
    while True:
        request = journal.search.next()
        if isinstance(request, Result):
            return _with_notes(request, history, taken)
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
    """With the ends' own words, where the answer is about them."""
    if result.kind not in _ABOUT_ENDS:
        return result
    notes = []
    positions = [0, len(history) - 1]
    if result.kind is Kind.INFRASTRUCTURE:
        positions = sorted({s.position for s in taken if s.observation.ending is Ending.INFRA})
    for position in positions:
        seen = [step.observation for step in taken if step.position == position]
        said = [words for words in map(_words, seen) if words]
        if said:
            notes.append(f"{history.entries[position].short}: {said[-1].rstrip('.')}")
    reason = "; ".join([result.reason, *notes])
    for position in (0, len(history) - 1):
        entry = history.entries[position]
        reason = reason.replace(entry.name, entry.short)
    return replace(result, reason=reason)


def _words(seen: Observation) -> str:
    if seen.note:
        return seen.note
    if seen.verdict is None and seen.asked:
        return f"{seen.correct} of {seen.asked} right"
    return _ending(seen.ending)


def _ending(ending: Ending) -> str:
    return "" if ending is Ending.MEASURED else ending.value.replace("_", " ")
