"""What is known beforehand about the night-to-night noise of a series."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf, lcm, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from poolbisect.evidence.baseline import BaselineScore, SpreadKind

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """Night-to-night noise, as far as it is known beforehand.

    `sd` is a recorded standard deviation resting on `freedom` degrees of freedom: infinite where
    it is taken as known, 0 where nothing is recorded and a test estimates it from what it leaves
    unexplained; in between the two are pooled. `grid` is the step between possible scores, 0 if
    continuous: rounding adds grid^2 / 12 to an estimated variance, so that ties among few scores
    do not pass for certainty.
    """

    sd: float = 0.0
    freedom: float = 0.0
    grid: float = 0.0

    @property
    def floor(self) -> float:
        # 1e-18 is far above what rounding of floating-point scores leaves.
        return self.grid**2 / 12 + 1e-18

    @property
    def known(self) -> bool:
        return isinf(self.freedom)

    def p_value(self, explained: float, left: float, groups: int, nights: int) -> float:
        """p of `groups` further levels explaining `explained` of the sum of squares."""
        # scipy.special, since the distribution objects of scipy.stats cost ten times the value.
        if self.known:
            return float(chdtrc(groups, max(0.0, explained) / self.sd**2))
        freedom = self.freedom + nights - 1 - groups
        if freedom < 1:
            return 1.0
        statistic = max(0.0, explained) / groups / self._variance(left, freedom)
        return float(fdtrc(groups, freedom, statistic))

    def cost(self, left: float, parameters: float, nights: int) -> float:
        """Bayesian information criterion of a model with `parameters` (Schwarz 1978)."""
        penalty = parameters * log(nights)
        if self.known:
            return left / self.sd**2 + penalty
        weight = nights + self.freedom
        return weight * log(self._variance(left, weight)) + penalty

    def variance(self, left: float, nights: int, parameters: int) -> float:
        """Variance of one night, given what a model with `parameters` leaves of `nights`."""
        if self.known:
            return self.sd**2
        return self._variance(left, max(1.0, self.freedom + nights - parameters))

    def _variance(self, left: float, freedom: float) -> float:
        recorded = self.freedom * self.sd**2 if self.freedom else 0.0
        return (recorded + max(left, 0.0)) / freedom + self.floor


def chance_of_ties(nights: int, noise: Noise) -> float:
    """Bound on the chance that `nights` nights score exactly alike; 1 if noise or grid is 0.

    The sum of p^nights over all scores is at most max(p)^(nights - 1), and max(p) at most
    grid / (sd sqrt(2 pi)) under normal noise.
    """
    if not noise.sd or not noise.grid:
        return 1.0
    return float(min(1.0, noise.grid / (noise.sd * sqrt(2 * pi))) ** (nights - 1))


def same_at_end(scores: Scores) -> int:
    """How many nights at the end have exactly the last score."""
    other = np.flatnonzero(scores != scores[-1])
    return int(scores.size - 1 - other[-1]) if other.size else int(scores.size)


def score_grid(scores: Scores) -> float:
    """Step of which all scores are multiples, such as 1/1319; 0 if they look continuous."""
    steps = 1
    for score in scores.tolist():
        share = Fraction(score).limit_denominator(10_000)
        steps = lcm(steps, share.denominator)
        if abs(float(share) - score) > 1e-12 or steps > 1_000_000:
            return 0.0
    return 1 / steps


def recorded_noise(baseline: BaselineScore, grid: float) -> Noise:
    """The baseline's spread; known if its runs were not counted or it is a formula's."""
    counted = baseline.runs if baseline.spread is SpreadKind.RUN_TO_RUN and baseline.sd else None
    # A subject that never moved is deterministic: any other score is a change.
    return Noise(max(baseline.sd, 1e-9), counted - 1 if counted else inf, grid)


def is_noisier(scores: Scores, sd: float) -> bool:
    """Whether night-to-night moves are far larger than the recorded spread explains.

    The median absolute move of normal noise is 0.954 sd; it hardly notices a few steps. The
    allowance of 5 / sqrt(nights) keeps a healthy series on its recorded spread.
    """
    if scores.size < 8:
        return False
    typical = float(np.median(np.abs(np.diff(scores)))) / 0.954
    return typical > (1 + 5 / sqrt(scores.size)) * sd
