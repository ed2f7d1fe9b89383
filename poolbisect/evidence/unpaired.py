"""Two runs over different questions: the pooled two-proportion z test."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from scipy.stats import norm

from poolbisect.evidence.intervals import Interval, check_counts, difference_interval


@dataclass(frozen=True, slots=True)
class UnpairedComparison:
    """Right answers and questions of two runs that cannot be paired."""

    before_correct: int
    before_asked: int
    after_correct: int
    after_asked: int

    def __post_init__(self) -> None:
        check_counts(self.before_correct, self.before_asked)
        check_counts(self.after_correct, self.after_asked)

    @property
    def before(self) -> float:
        """Accuracy of the first run; NaN without any question."""
        return self.before_correct / self.before_asked if self.before_asked else float("nan")

    @property
    def after(self) -> float:
        """Accuracy of the second run; NaN without any question."""
        return self.after_correct / self.after_asked if self.after_asked else float("nan")

    @property
    def difference(self) -> float:
        """Accuracy after minus before: negative is a drop; 0 if either run has no question."""
        return self.after - self.before if self.before_asked and self.after_asked else 0.0

    @property
    def z(self) -> float:
        """Pooled z statistic, negative for a drop; 0 where both runs are all right or all wrong."""
        if not (self.before_asked and self.after_asked):
            return 0.0
        asked = self.before_asked + self.after_asked
        pooled = (self.before_correct + self.after_correct) / asked
        variance = pooled * (1 - pooled) * (1 / self.before_asked + 1 / self.after_asked)
        return self.difference / sqrt(variance) if variance > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of `z`."""
        return float(2 * norm.sf(abs(self.z)))

    @property
    def interval(self) -> Interval:
        """95 % interval of `difference`."""
        return self.interval_at(0.95)

    def interval_at(self, confidence: float) -> Interval:
        """Interval of `difference` (Newcombe 1998, unpaired method 10)."""
        return difference_interval(
            (self.before_correct, self.before_asked),
            (self.after_correct, self.after_asked),
            confidence,
        )


def compare_unpaired(
    before_correct: int, before_asked: int, after_correct: int, after_asked: int
) -> UnpairedComparison:
    """Compare two scores whose questions cannot be matched one to one.

    The test is z = (p2 - p1) / sqrt(p (1 - p) (1/n1 + 1/n2)) with p the pooled accuracy
    (Fleiss, Levin & Paik 2003, chapter 3). Raises ValueError for impossible counts.
    """
    return UnpairedComparison(before_correct, before_asked, after_correct, after_asked)
