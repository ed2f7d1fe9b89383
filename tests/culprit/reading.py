"""A probe that reads what to report from a file of the commit: real history, no cost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from poolbisect.bisection.outcome import Ending, Find, Observation, ProbeRequest, Verdict
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.culprit import workflow
from poolbisect.culprit.decisions import Decisions
from poolbisect.culprit.interface import Attempt, Probed, Watch
from poolbisect.culprit.outcome import BisectOutcome
from poolbisect.culprit.request import BisectRequest, pinned
from poolbisect.culprit.session import REQUEST, Session
from poolbisect.culprit.watcher import Watcher
from poolbisect.history.ranges import CommitRange, HistoryRange

STATE = "state.txt"


class ReadingProbe:
    """The first word of state.txt: good, bad, the name of an ending, or `rate` and the chance of
    a right answer (of looking good, in a search over verdicts)."""

    name = "command"

    def __init__(
        self,
        history: HistoryRange,
        plan: Plan,
        seen: list[int] | None = None,
        step: int | None = None,
    ) -> None:
        """With `step` the file holds a number, and numbers from `step` on are bad."""
        assert isinstance(history, CommitRange)
        self._step = step
        self._history = history
        self._plan = plan
        self._random = random.Random(7)
        self.positions: list[int] = [] if seen is None else seen
        self.closed = False

    def plan(self) -> Plan:
        return self._plan

    def probe(self, request: ProbeRequest, attempt: Attempt, watch: Watch) -> Probed:
        self.positions.append(request.position)
        sha = self._history.commits[request.position].sha
        found = self._history.repository.git.read(f"{sha}:{STATE}")
        assert found is not None
        word, *rest = found.content.decode().split()
        if self._step is not None:
            word = "bad" if int(word) >= self._step else "good"
        return Probed(self._observe(word, rest, request), {"detail": word})

    def _observe(self, word: str, rest: list[str], request: ProbeRequest) -> Observation:
        if word in ("good", "bad"):
            return Observation.judged(Verdict(word))
        if word == "interrupt":
            raise KeyboardInterrupt
        if word != "rate":
            return Observation.failed(Ending(word))
        rate = float(rest[0])
        if self._plan.mode is Mode.COUNTS:
            right = sum(self._random.random() < rate for _ in range(request.questions))
            return Observation.counts(right, request.questions)
        good = self._random.random() < rate
        return Observation.judged(Verdict.GOOD if good else Verdict.BAD)

    def close(self) -> None:
        self.closed = True


def write_line(builder: Any, states: Sequence[str]) -> list[str]:
    """One commit a state; their ids."""
    return [
        builder.commit(f"commit {number}", {"state.txt": f"{state}\n", "n.txt": str(number)})
        for number, state in enumerate(states)
    ]


def bisect(
    folder: Path,
    good: str,
    bad: str,
    out: Path,
    *,
    plan: Plan | None = None,
    seen: list[int] | None = None,
    budget: Budget | None = None,
    decisions: Decisions | None = None,
    confidence: float = 0.99,
    step: int | None = None,
    **request: Any,
) -> BisectOutcome:
    """Start a bisect, or go on with the one in `out`."""
    session = Session(out)

    def open_probe(
        _: BisectRequest, history: HistoryRange, scratch: Path, watch: Watch
    ) -> ReadingProbe:
        return ReadingProbe(history, plan or Plan(mode=Mode.EXACT), seen, step)

    if (out / REQUEST).exists():
        return workflow.go_on(session, open_probe, Watcher(), budget, decisions)
    asked, history = pinned(
        BisectRequest(
            history="commit",
            good=good,
            bad=bad,
            repository=str(folder),
            probe="command",
            confidence=confidence,
            command=("bisect",),
            skips=decisions.skips if decisions else (),
            suspects=decisions.suspects if decisions else (),
            **request,
        )
    )
    return workflow.start(asked, history, session, open_probe, Watcher(), budget)


def named(outcome: BisectOutcome) -> str | None:
    """The commit that is blamed."""
    found = outcome.innermost
    if not found.found or found.result is None or found.result.culprit is None:
        return None
    return found.history.entries[found.result.culprit].name


def suspects(outcome: BisectOutcome) -> list[str]:
    assert outcome.result is not None
    assert outcome.result.suspects is not None
    first, last = outcome.result.suspects
    return [entry.name for entry in outcome.history.entries[first : last + 1]]


FIXED = Find.FIXED
