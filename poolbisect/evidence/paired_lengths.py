"""Two runs over the same questions: did a per-question quantity, such as accept length, fall?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from scipy.stats import wilcoxon

QuestionId = TypeVar("QuestionId", bound=Hashable)


@dataclass(frozen=True, slots=True)
class LengthComparison:
    """Questions whose value fell or rose, their mean `before` and `after`, and the p-value.

    The test is Wilcoxon's signed-rank test on the questions that differ (Wilcoxon 1945), two-sided;
    p is 1 and the means are NaN when none does.
    """

    fell: int
    rose: int
    before: float
    after: float
    p_value: float

    @property
    def differing(self) -> int:
        return self.fell + self.rose


def compare_lengths(
    before: Mapping[QuestionId, float], after: Mapping[QuestionId, float]
) -> LengthComparison:
    """Compare the questions that both runs have a value for."""
    pairs = [(before[q], after[q]) for q in before if q in after and before[q] != after[q]]
    if not pairs:
        return LengthComparison(0, 0, float("nan"), float("nan"), 1.0)
    olds, news = [old for old, _ in pairs], [new for _, new in pairs]
    return LengthComparison(
        fell=sum(new < old for old, new in pairs),
        rose=sum(new > old for old, new in pairs),
        before=sum(olds) / len(pairs),
        after=sum(news) / len(pairs),
        p_value=float(wilcoxon(olds, news).pvalue),
    )
