"""How runs of a command are judged, and so how its history is searched.

It follows from the options; where they leave it open, from a first run at the older end, and where
that printed a score without saying how many questions it rests on, from one at the newer end too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.outcome import Find
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.probes.command.invocation import used
from poolbisect.probes.command.options import BadIf, CommandOptions
from poolbisect.probes.command.score_reading import Reading

LEAST_DROP = 0.005
"""Ends whose scores, of unknown precision, differ by less are taken for alike."""

_START = 500.0
"""Price of a run in questions where a run may ask any number: what starting a server costs."""

_MOST_RUNS = 8
"""Runs of an end before both ends are called alike."""


class Judge(StrEnum):
    """What of a run is looked at."""

    EXIT = "exit"
    CRASH = "crash"
    THRESHOLD = "threshold"
    COUNTS = "counts"
    ANSWERS = "answers"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """`asked`: questions of every run, where that is fixed. `threshold`: the lowest good score.
    `flaky`: whether runs of one commit may differ. `why`: in words, for the report."""

    judge: Judge
    why: str
    asked: int | None = None
    threshold: float | None = None
    flaky: bool = False


class Silent(NamedTuple):
    """A run without a score: why; and whether that is the command's way, or the host's fault, or
    that of a commit which cannot be run; and whether it states a score that cannot be read."""

    reason: str
    is_usual: bool = True
    is_infra: bool = False
    is_unreadable: bool = False


Look = Callable[[int], Reading | Silent]
"""Run the command at the older (0) or newer (-1) end."""


def decide(options: CommandOptions, argv: Sequence[str], find: Find, look: Look) -> Decision:
    """How to judge.

    Raises:
        UsageError: an end's run states a score that cannot be read, or a score was asked for and
            neither end's run has one that can be judged.
        InfrastructureError: the host failed at the ends, so that it cannot be seen what there is.
    """
    if options.bad_if is BadIf.CRASH:
        why = "a crash is bad, whatever else happens is good"
        return Decision(judge=Judge.CRASH, why=why, flaky=bool(options.flaky))
    if options.bad_if is BadIf.EXIT:
        return _by_exit(options, "the exit status judges, as asked for")
    if options.threshold is not None:
        return Decision(
            judge=Judge.THRESHOLD,
            why=f"a score below {options.threshold:g} is bad",
            threshold=options.threshold,
            asked=options.asked,
            flaky=options.flaky is not False,
        )
    look = functools.cache(functools.partial(_readable, options, look))
    seen = look(0)
    if isinstance(seen, Silent) and (options.wants_score or not seen.is_usual):
        newer = look(-1)
        if isinstance(newer, Silent):
            return _silent(options, seen, newer)
        seen = newer
    if isinstance(seen, Silent):
        return _by_exit(options, "the first run gave no score, so the exit status judges")
    return _by_score(options, argv, find, look, seen)


def _readable(options: CommandOptions, look: Look, end: int) -> Reading | Silent:
    """What is seen at an end. UsageError for a score that cannot be read: the user means it."""
    seen = look(end)
    if isinstance(seen, Silent) and seen.is_unreadable:
        ways = ["let the command give one score that can be read"]
        if not options.chooses_score:
            ways.append("choose it with --score-regex")
        if not options.wants_score:
            ways.append("judge by the exit status with --bad-if exit")
        raise UsageError(f"{_words(seen)}; {', or '.join(ways)}.")
    return seen


def _silent(options: CommandOptions, older: Silent, newer: Silent) -> Decision:
    """Neither end has a score."""
    if (older.is_infra or newer.is_infra) and not (older.is_usual or newer.is_usual):
        failed = older if older.is_infra else newer
        raise InfrastructureError(
            f"the command could not be run at the ends ({_words(failed)}); try again, or say with "
            "--bad-if what makes a commit bad."
        )
    if options.wants_score:
        raise UsageError(
            f"the command gives no score at either end, so nothing can be judged: {_words(older)}."
        )
    return _by_exit(options, "no run gave a score, so the exit status judges")


def _words(silent: Silent) -> str:
    return silent.reason.rstrip(".")


def _by_exit(options: CommandOptions, why: str) -> Decision:
    return Decision(judge=Judge.EXIT, why=why, flaky=bool(options.flaky))


def _by_score(
    options: CommandOptions, argv: Sequence[str], find: Find, look: Look, seen: Reading
) -> Decision:
    fixed = None if "questions" in used(argv) else seen.answered
    if seen.answers is not None:
        why = "the same questions' answers are compared, one by one"
        return Decision(judge=Judge.ANSWERS, why=why, asked=options.asked or fixed)
    if seen.counts is not None:
        why = f"right answers among {seen.answered} questions a run are compared"
        return Decision(judge=Judge.COUNTS, why=why, asked=options.asked or fixed)
    ends = look(0), look(-1)
    for silent in ends:
        if not isinstance(silent, Silent):
            continue
        if silent.is_infra:
            raise InfrastructureError(
                f"one end scores {seen.score:.4g}, of an unknown number of questions, and the "
                f"other could not be run ({_words(silent)}); try again, or say with --threshold "
                "which score is bad."
            )
        raise UsageError(
            f"one end scores {seen.score:.4g}, of an unknown number of questions, and the other "
            f"gives no score ({_words(silent)}); say with --threshold which score is bad, or with "
            "--bad-if exit that the exit status judges."
        )
    older, newer = ends
    assert isinstance(older, Reading)
    assert isinstance(newer, Reading)
    return _between(options, find, older.score, newer.score)


def _between(options: CommandOptions, find: Find, old: float, new: float) -> Decision:
    good, bad = (old, new) if find is Find.INTRODUCED else (new, old)
    flaky = options.flaky is not False
    if good - bad < LEAST_DROP:
        # Both ends on one side: the search says that they are alike, in its own words.
        rule = max(min(old, new) - LEAST_DROP, 0.0)
        why = f"the ends score {old:.4g} and {new:.4g}, which is no drop to look for"
        return Decision(judge=Judge.THRESHOLD, why=why, threshold=rule, flaky=flaky)
    rule = (good + bad) / 2
    why = (
        f"a score below {rule:.4g} is bad, half way between the ends' {good:.4g} and {bad:.4g}, "
        "since the command does not say how many questions a score rests on"
    )
    return Decision(judge=Judge.THRESHOLD, why=why, threshold=rule, flaky=flaky)


def plan_for(decision: Decision, argv: Sequence[str]) -> Plan:
    """How to search. A run costs the same wherever it runs: each brings its commit up anew."""
    asked = decision.asked
    match decision.judge:
        case Judge.ANSWERS:
            mode = Mode.PAIRED
        case Judge.COUNTS:
            mode = Mode.COUNTS
        case _:
            mode = Mode.VERDICTS if decision.flaky else Mode.EXACT
    if mode in (Mode.EXACT, Mode.VERDICTS):
        costs = CostModel(switch=0.1, question=1.0)
        return Plan(mode=mode, costs=costs, crash_is_bad=decision.judge is Judge.CRASH)
    places = used(argv)
    if "questions" in places:
        costs = CostModel(switch=_START / 10, question=1.0, probe=_START)
        most = 0 if asked is None else asked
        first = 0 if asked is None else min(asked, Plan(mode=mode).first_questions)
        return Plan(mode=mode, costs=costs, end_questions=first, max_end_questions=most)
    assert asked is not None
    costs = CostModel(switch=asked / 10, question=1.0)
    if mode is Mode.PAIRED:
        return Plan(
            mode=mode, costs=costs, batch=asked, end_questions=asked, max_end_questions=asked
        )
    most = asked * _MOST_RUNS
    return Plan(mode=mode, costs=costs, batch=asked, end_questions=asked, max_end_questions=most)


def save(decision: Decision, file: Path) -> None:
    file.write_bytes(msgspec.json.encode(decision) + b"\n")


def saved(file: Path) -> Decision | None:
    """The decision of an earlier start of the same bisect, None if there is none to be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Decision)
    except (OSError, msgspec.MsgspecError):
        return None
