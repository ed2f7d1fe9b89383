"""Everything a search is told before it starts; written to the journal's first line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Find
from poolbisect.bisection.shapes import Prior
from poolbisect.errors import UsageError


class Mode(StrEnum):
    EXACT = "exact"
    """A probe's verdict is certain (contract probe): plain binary search."""
    VERDICTS = "verdicts"
    """A probe answers good or bad, and may err either way."""
    COUNTS = "counts"
    """A probe answers with right and asked; every probe may ask other questions."""
    PAIRED = "paired"
    """Probes ask the same questions in the same order and report each answer."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits after which the search answers with what it has; None is no limit."""

    probes: int | None = None
    questions: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("probes", "questions", "seconds"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"budget.{name} is {value}; give a positive number or none at all")


@dataclass(frozen=True, slots=True)
class Plan:
    """How to search.

    `rule`: rate of right answers that separates good from bad, where there is one. `baseline`:
    earlier (right, asked) of good commits under the very same key, which the good side's rate
    then starts from (`counts` only; divide by the design effect where runs differ). `weights`:
    prior of each commit being the culprit. `end_questions`, `max_end_questions`: asked of each end
    at first, and at most before both ends are called alike (both 0: 800 and 2600; paired 250 and
    1300, each asked twice). `batch`: fewest questions of one probe. `crash_is_bad`: the symptom is
    a crash. `infra_retries`: failed attempts at a commit before it is passed over.
    `recheck_ends`: measure both ends once more before blaming a commit.
    """

    mode: Mode = Mode.EXACT
    find: Find = Find.INTRODUCED
    confidence: float = 0.99
    budget: Budget = field(default_factory=Budget)
    costs: CostModel = field(default_factory=CostModel)
    noise: Noise = field(default_factory=Noise)
    rule: float | None = None
    baseline: tuple[int, int] | None = None
    weights: tuple[float, ...] | None = None
    end_questions: int = 0
    max_end_questions: int = 0
    batch: int = 50
    crash_is_bad: bool = False
    infra_retries: int = 2
    recheck_ends: bool = False

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}; give at least 0.5 and less than 1")
        if self.rule is not None and not 0 < self.rule < 1:
            raise UsageError(f"rule is {self.rule}; give a rate between 0 and 1")
        if min(self.end_questions, self.max_end_questions, self.infra_retries) < 0:
            raise UsageError(
                "end_questions, max_end_questions and infra_retries cannot be negative"
            )
        if self.baseline is not None:
            right, asked = self.baseline
            if self.mode is not Mode.COUNTS or not 0 <= right <= asked:
                raise UsageError("a baseline is (right, asked), for a search in counts only")
        if self.batch < 1:
            raise UsageError(f"batch is {self.batch}; a probe asks at least one question")

    @property
    def first_questions(self) -> int:
        """Questions of an end's first probe."""
        defaults = {Mode.PAIRED: 250, Mode.COUNTS: 800}
        return self.end_questions or defaults.get(self.mode, 1)

    @property
    def most_end_questions(self) -> int:
        defaults = {Mode.PAIRED: 1300, Mode.COUNTS: 2600}
        return max(self.max_end_questions or defaults.get(self.mode, 8), self.first_questions)

    @property
    def smallest_batch(self) -> int:
        return self.batch if self.mode in (Mode.COUNTS, Mode.PAIRED) else 1

    @property
    def priors(self) -> tuple[Prior, Prior]:
        """Of the older and the newer side. Verdicts are expected to be mostly right (good commits
        look bad 1 time in 20, bad ones look good 1 in 5); for scores Jeffreys, which takes no side.
        """
        good, bad = Prior(), Prior()
        if self.mode is Mode.VERDICTS:
            good, bad = Prior(4.75, 0.25), Prior(0.4, 1.6)
        if self.baseline is not None:
            right, asked = self.baseline
            good = Prior(0.5 + right, 0.5 + asked - right)
        return (good, bad) if self.find is Find.INTRODUCED else (bad, good)
