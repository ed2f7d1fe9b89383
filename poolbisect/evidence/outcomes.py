"""Counts of one run's outcomes; questions lost to the infrastructure are not wrong answers."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.evidence.intervals import Interval, wilson

MAX_LOST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes of one run, counted in questions.

    `invalid` answers (the model replied, no answer could be read) are the subject's fault and
    count as wrong; `lost` questions (connection, host, timeout of ours) say nothing about it.
    """

    right: int
    wrong: int
    invalid: int = 0
    lost: int = 0

    def __post_init__(self) -> None:
        if min(self.right, self.wrong, self.invalid, self.lost) < 0:
            raise ValueError(f"counts cannot be negative: {self}")

    @property
    def asked(self) -> int:
        return self.right + self.wrong + self.invalid + self.lost

    @property
    def answered(self) -> int:
        """Questions that count: all but the lost ones."""
        return self.asked - self.lost

    @property
    def accuracy(self) -> float | None:
        """Right answers over answered questions; None, never 0, if nothing was answered."""
        return self.right / self.answered if self.answered else None

    @property
    def interval(self) -> Interval:
        """95 % Wilson interval of `accuracy`."""
        return wilson(self.right, self.answered)

    @property
    def bounds(self) -> Interval:
        """Accuracy had every lost question been wrong, and had every one been right."""
        if not self.asked:
            return Interval(0.0, 1.0)
        return Interval(self.right / self.asked, (self.right + self.lost) / self.asked)

    def is_infra(self, max_lost_share: float = MAX_LOST_SHARE) -> bool:
        """Whether too many questions were lost for the score to count for or against a subject.

        True without any answered question, and where more than `max_lost_share` were lost.
        """
        return self.answered == 0 or self.lost > max_lost_share * self.asked
