"""What a probe can report, what the search can ask for, and what it can answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from poolbisect.errors import UsageError


class Find(StrEnum):
    """Which step is looked for; positions run from the oldest commit to the newest either way."""

    INTRODUCED = "introduced"
    """Position 0 is good, the last one is bad; the answer is the first bad commit."""
    FIXED = "fixed"
    """Position 0 is bad, the last one is good; the answer is the first fixed commit."""


class Verdict(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Ending(StrEnum):
    """How a probe ended. Only `measured` (and `crashed`, if that is the symptom) can be judged."""

    MEASURED = "measured"
    CRASHED = "crashed"
    BUILD_FAILED = "build_failed"
    TIMED_OUT = "timed_out"
    UNTESTABLE = "untestable"
    INFRA = "infra"


@dataclass(frozen=True, slots=True)
class Observation:
    """One probe's summary at one commit; each is one independent run of the harness.

    `correct`, `asked`: answers right and questions answered (lost ones are in neither).
    `outcomes`: one character a question from question number `offset` on, "1" right, "0" wrong,
    "-" not answered. `verdict`: for subjects that are judged as a whole. `seconds`: what it took.
    """

    ending: Ending = Ending.MEASURED
    verdict: Verdict | None = None
    correct: int = 0
    asked: int = 0
    outcomes: str | None = None
    offset: int = 0
    seconds: float = 0.0
    note: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.asked:
            raise UsageError(
                f"an observation has {self.correct} correct answers of {self.asked}; "
                "give 0 <= correct <= asked"
            )
        if self.offset < 0 or self.seconds < 0:
            raise UsageError("an observation has a negative offset or duration; give 0 or more")
        if self.outcomes is not None:
            if set(self.outcomes) - set("01-"):
                raise UsageError('outcomes may only hold "1", "0" and "-", one for each question')
            right, wrong = self.outcomes.count("1"), self.outcomes.count("0")
            if (right, right + wrong) != (self.correct, self.asked):
                raise UsageError("correct and asked do not agree with the outcomes they sum up")

    @classmethod
    def judged(cls, verdict: Verdict, *, seconds: float = 0.0, note: str = "") -> Observation:
        return cls(verdict=verdict, seconds=seconds, note=note)

    @classmethod
    def counts(cls, correct: int, asked: int, *, seconds: float = 0.0) -> Observation:
        return cls(correct=correct, asked=asked, seconds=seconds)

    @classmethod
    def answers(cls, outcomes: str, *, offset: int = 0, seconds: float = 0.0) -> Observation:
        right, wrong = outcomes.count("1"), outcomes.count("0")
        return cls(
            correct=right, asked=right + wrong, outcomes=outcomes, offset=offset, seconds=seconds
        )

    @classmethod
    def failed(cls, ending: Ending, *, seconds: float = 0.0, note: str = "") -> Observation:
        return cls(ending=ending, seconds=seconds, note=note)


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """Measure the commit at `position`: `questions` questions from number `offset` on.

    Unpaired searches ignore `offset`; searches over verdicts ask for 1 question, a run.
    """

    position: int
    questions: int = 1
    offset: int = 0
    reason: str = ""


class Kind(StrEnum):
    """Every answer a search can end with; docs/bisection.md explains each."""

    CULPRIT = "culprit"
    SECOND_STEP = "second_step"
    SUSPECT_RANGE = "suspect_range"
    BOTH_GOOD = "both_good"
    BOTH_BAD = "both_bad"
    REVERSED = "reversed"
    DRIFT = "drift"
    FLAKY = "flaky"
    ENVIRONMENT = "environment"
    UNTESTABLE = "untestable"
    INFRASTRUCTURE = "infrastructure"


EXIT_CODES = dict.fromkeys(Kind, 4) | {
    Kind.CULPRIT: 0,
    Kind.SECOND_STEP: 0,
    Kind.BOTH_GOOD: 2,
    Kind.BOTH_BAD: 2,
    Kind.REVERSED: 2,
    Kind.INFRASTRUCTURE: 3,
}


@dataclass(frozen=True, slots=True)
class Spent:
    """Cost so far; a switch is a probe at another commit than the probe before it."""

    probes: int = 0
    questions: int = 0
    switches: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """An answer. `suspects` are inclusive positions that can hold the step; `others`: more steps.

    `culprit` is the first position in the new state (first bad, or first fixed), and None unless
    isolated. `confidence` is the posterior mass of `culprit`, or else of `suspects`.
    """

    kind: Kind
    reason: str
    spent: Spent
    culprit: int | None = None
    suspects: tuple[int, int] | None = None
    confidence: float = 0.0
    others: tuple[tuple[int, int], ...] = field(default=())

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.kind]
