"""Confidence intervals of proportions and of their differences."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from scipy.stats import norm


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed range `[low, high]`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"interval ends out of order: {self.low} > {self.high}")

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        return self.high - self.low


def check_counts(correct: int, asked: int) -> None:
    """Raise ValueError unless `0 <= correct <= asked`."""
    if not 0 <= correct <= asked:
        raise ValueError(f"correct must lie between 0 and asked, got {correct} of {asked}")


def two_sided_z(confidence: float) -> float:
    """Standard normal quantile that leaves `(1 - confidence) / 2` in each tail."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    return float(norm.ppf(0.5 + confidence / 2))


def wilson(correct: int, asked: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval of an accuracy (Wilson 1927, JASA 22:209).

    Covers the sampling error of the questions asked, not run-to-run spread on the same questions.
    With `asked == 0` nothing is known and the interval is [0, 1].
    """
    check_counts(correct, asked)
    z = two_sided_z(confidence)
    if asked == 0:
        return Interval(0.0, 1.0)
    share = correct / asked
    scale = 1 + z * z / asked
    centre = (share + z * z / (2 * asked)) / scale
    half = z * sqrt(share * (1 - share) / asked + z * z / (4 * asked * asked)) / scale
    # At 0 and at `asked` the ends are exactly 0 and 1; rounding must not cut them off.
    low = 0.0 if correct == 0 else max(0.0, centre - half)
    high = 1.0 if correct == asked else min(1.0, centre + half)
    return Interval(low, high)


def difference_interval(
    before: tuple[int, int],
    after: tuple[int, int],
    confidence: float = 0.95,
    correlation: float = 0.0,
) -> Interval:
    """Interval of `after - before` from the two Wilson intervals (Newcombe 1998, method 10).

    Each argument is `(correct, asked)`. `correlation` is the phi coefficient between the two
    runs: 0 for independent questions (Stat Med 17:873), that of the paired table for the same
    questions (Stat Med 17:2635).
    """
    lower_half, upper_half = [], []
    difference = 0.0
    for sign, (correct, asked) in ((1, after), (-1, before)):
        interval = wilson(correct, asked, confidence)
        if asked == 0:
            return Interval(-1.0, 1.0)
        share = correct / asked
        below, above = share - interval.low, interval.high - share
        difference += sign * share
        lower_half.append(below if sign > 0 else above)
        upper_half.append(above if sign > 0 else below)
    down, up = (
        sqrt(max(0.0, a * a - 2 * correlation * a * b + b * b)) for a, b in (lower_half, upper_half)
    )
    return Interval(max(-1.0, difference - down), min(1.0, difference + up))
