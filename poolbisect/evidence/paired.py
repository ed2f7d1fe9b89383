"""Two runs over the same questions: exact McNemar test and the change in accuracy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import TypeVar

from scipy.stats import binomtest

from poolbisect.evidence.intervals import Interval, difference_interval

QuestionId = TypeVar("QuestionId", bound=Hashable)


def mcnemar_exact(lost: int, gained: int) -> float:
    """Two-sided exact p-value of McNemar's test (McNemar 1947; binomial form, Mosteller 1952).

    `lost` questions were right before and wrong after, `gained` the reverse. Questions on which
    both runs agree carry no information about a change. Without any discordant pair p is 1.
    """
    if lost < 0 or gained < 0:
        raise ValueError(f"counts cannot be negative, got lost={lost}, gained={gained}")
    if lost + gained == 0:
        return 1.0
    return float(binomtest(lost, lost + gained, 0.5).pvalue)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The four cells of a paired table, counted in questions; `lost` is right before, wrong after.

    The ids of the discordant questions come along where they are known. `unmatched` counts
    questions that only one of the two runs answered; they are in no cell.
    """

    both_right: int
    lost: int
    gained: int
    both_wrong: int
    lost_ids: tuple[Hashable, ...] = field(default=(), repr=False)
    gained_ids: tuple[Hashable, ...] = field(default=(), repr=False)
    unmatched: int = 0

    def __post_init__(self) -> None:
        if min(self.both_right, self.lost, self.gained, self.both_wrong, self.unmatched) < 0:
            raise ValueError(f"counts cannot be negative: {self}")

    @property
    def n(self) -> int:
        """Questions answered by both runs."""
        return self.both_right + self.lost + self.gained + self.both_wrong

    @property
    def before(self) -> float:
        """Accuracy of the first run on the shared questions; NaN without any."""
        return (self.both_right + self.lost) / self.n if self.n else float("nan")

    @property
    def after(self) -> float:
        """Accuracy of the second run on the shared questions; NaN without any."""
        return (self.both_right + self.gained) / self.n if self.n else float("nan")

    @property
    def difference(self) -> float:
        """Accuracy after minus before: negative is a drop; 0 without any shared question."""
        return (self.gained - self.lost) / self.n if self.n else 0.0

    @property
    def discordant_share(self) -> float:
        """Share of questions answered rightly by exactly one run; 0 without any question."""
        return (self.lost + self.gained) / self.n if self.n else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided exact McNemar p-value."""
        return mcnemar_exact(self.lost, self.gained)

    @property
    def correlation(self) -> float:
        """Phi coefficient of the table with Newcombe's continuity correction, 0 if undefined."""
        a, b, c, d = self.both_right, self.lost, self.gained, self.both_wrong
        margins = (a + b) * (c + d) * (a + c) * (b + d)
        if margins == 0:
            return 0.0
        product = a * d - b * c
        corrected = max(product - self.n / 2, 0.0) if product > 0 else float(product)
        return corrected / sqrt(margins)

    @property
    def interval(self) -> Interval:
        """95 % interval of `difference`."""
        return self.interval_at(0.95)

    def interval_at(self, confidence: float) -> Interval:
        """Interval of `difference` (Newcombe 1998, paired method 10)."""
        return difference_interval(
            (self.both_right + self.lost, self.n),
            (self.both_right + self.gained, self.n),
            confidence,
            self.correlation,
        )


def compare_paired(
    before: Mapping[QuestionId, bool], after: Mapping[QuestionId, bool]
) -> PairedComparison:
    """Compare two runs question by question; each maps a question id to "answered rightly".

    Questions that only one run answered are counted in `unmatched` and left out otherwise.
    Discordant ids keep the order of `before`.
    """
    shared = [question for question in before if question in after]
    lost = tuple(q for q in shared if before[q] and not after[q])
    gained = tuple(q for q in shared if after[q] and not before[q])
    both_right = sum(1 for q in shared if before[q] and after[q])
    return PairedComparison(
        both_right=both_right,
        lost=len(lost),
        gained=len(gained),
        both_wrong=len(shared) - both_right - len(lost) - len(gained),
        lost_ids=lost,
        gained_ids=gained,
        unmatched=len(before) + len(after) - 2 * len(shared),
    )
