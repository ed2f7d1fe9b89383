"""Where the step is, given counts at the measured commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from poolbisect.bisection.shapes import (
    Cumulative,
    Prior,
    Tally,
    mean_and_variance,
    no_step,
    one_step,
    slope,
    two_steps,
)
from poolbisect.errors import UsageError

Floats = NDArray[np.float64]

NO_STEP, TWO_STEPS, SLOPE = 0.05, 0.03, 0.02
"""Prior chances: that nothing changes (somebody saw a drop, or there would be no search); and if
something does, that it is not one step."""


def position_weights(commits: int, weights: Sequence[float] | None) -> Floats:
    """Prior of each position being the first in the new state, shape (commits,), 0 at position 0.

    `weights` (one a commit, relative) are mixed with 1 % of a flat prior: none is ruled out.
    """
    flat = np.ones(commits)
    flat[0] = 0.0
    flat /= flat.sum()
    if weights is None:
        return flat
    given = np.array(weights, dtype=float)
    if given.shape != (commits,) or not np.isfinite(given).all() or (given < 0).any():
        raise UsageError(f"prior weights must be {commits} numbers of 0 or more, one a commit")
    given[0] = 0.0
    if given.sum() == 0:
        return flat
    return np.asarray(0.99 * given / given.sum() + 0.01 * flat)


@dataclass(frozen=True, slots=True)
class Explanations:
    """What each explanation expects of a position, for selection of the next probe.

    `chances` (H,), `means` and `variances` (H, S): the rates there, given all counts so far, for
    every gap the step may be in (the gap around an untried position counts twice: step before and
    after it), then no step, then slope.
    """

    chances: Floats
    means: Floats
    variances: Floats


class ChangePoint:
    """Posterior of the first position c in the new state.

    Answers in stratum s at position x are Bernoulli with rate a[s] if x < c, else b[s]; a and b
    are unknown, each with a Beta prior, and integrated out. So P(data | c) is a product of two
    beta-binomials of counts left and right of c, the same for all c between two measured
    positions: with cumulative counts every hypothesis costs O(1).
    Rivals: no step (a = b), two steps (free rate between), log-odds that follow a slope.
    """

    def __init__(
        self,
        tally: Tally,
        weights: Floats,
        *,
        old: Prior,
        new: Prior,
        rule: float | None = None,
        ends_log_odds: float = 0.0,
    ) -> None:
        """`weights` from `position_weights`; `ends_log_odds`: ln evidence that there is a change
        from what `tally` leaves out (the paired ends' own table)."""
        self.tally = tally
        self._weights = weights
        self._old, self._new = old, new
        self._sums = Cumulative.of(tally)
        reached = weights.cumsum()
        mass = np.diff(reached[tally.positions])
        with np.errstate(divide="ignore"):
            log_mass = np.log(mass)
        single = one_step(old, new, self._sums) + log_mass
        pairs = two_steps(old, new, self._sums, tally, rule)
        squares = np.diff((weights**2).cumsum()[tally.positions])
        both = mass[pairs.first] * mass[pairs.second]
        same = pairs.first == pairs.second
        both[same] = np.maximum((both[same] - squares[pairs.first[same]]) / 2, 0.0)
        with np.errstate(divide="ignore"):
            double = pairs.log_likelihood + np.log(both / max(both.sum(), 1e-300))
        straight = slope(old, new, tally)
        scores = {
            "one": single + np.log(1 - TWO_STEPS - SLOPE),
            "two": double + np.log(TWO_STEPS),
            "slope": np.array([straight.log_likelihood + np.log(SLOPE)]),
            "none": np.array([no_step(old, new, self._sums) - ends_log_odds]),
        }
        scores["none"] += np.log(NO_STEP / (1 - NO_STEP))
        total = logsumexp(np.concatenate(list(scores.values())))
        self._one = np.exp(scores["one"] - total)
        self._two = np.exp(scores["two"] - total)
        self._pairs = pairs
        self.slope = float(np.exp(scores["slope"][0] - total))
        self.none = float(np.exp(scores["none"][0] - total))
        crossing = self._one.copy()
        np.add.at(crossing, pairs.first, self._two * pairs.first_crosses)
        np.add.at(crossing, pairs.second, self._two * (1 - pairs.first_crosses))
        self.gaps: Floats = crossing
        """P(the step that crosses the rule lies in each gap), (k - 1,); the gap after measured
        position i holds positions[i] + 1 .. positions[i + 1]. Sums to 1 - none - slope."""
        self._mass = mass
        self._straight = straight
        r, n = self._sums.right, self._sums.asked
        self._sides = (
            *mean_and_variance(old, r[:, 1:-1], n[:, 1:-1]),
            *mean_and_variance(new, r[:, -1:] - r[:, 1:-1], n[:, -1:] - n[:, 1:-1]),
        )
        self._whole = mean_and_variance(Prior(), r[:, -1:], n[:, -1:])

    @property
    def two(self) -> float:
        """P(two steps that some measured commit lies between)."""
        return float(self._two[self._pairs.first != self._pairs.second].sum())

    def other_step(self, gap: int) -> int:
        """The gap of the most likely second step, given that the rule is crossed in `gap`."""
        pairs, share = self._pairs, self._two
        as_first = np.where((pairs.first == gap) & (pairs.second != gap), share, 0.0)
        as_second = np.where((pairs.second == gap) & (pairs.first != gap), share, 0.0)
        if as_first.max() >= as_second.max():
            return int(pairs.second[as_first.argmax()])
        return int(pairs.first[as_second.argmax()])

    def distribution(self) -> Floats:
        """P(c = each position), shape (commits,); sums to 1 - none - slope."""
        scale = np.divide(self.gaps, self._mass, out=np.zeros_like(self.gaps), where=self._mass > 0)
        spread = np.zeros_like(self._weights)
        width = np.diff(self.tally.positions)
        spread[1:] = np.repeat(scale, width)
        return np.asarray(spread * self._weights)

    def overall(self) -> tuple[Floats, Floats]:
        """Each side's mean rates (S,), averaged over where the step may be."""
        weight = self.gaps / max(self.gaps.sum(), 1e-300)
        return self._sides[0] @ weight, self._sides[2] @ weight

    def explanations(self, position: int, below: float) -> Explanations:
        """`below`: P(c <= position | a step)."""
        places = self.tally.positions
        # Gaps up to `cut` lie wholly at or before the position, those from `after` on behind it.
        cut = int(np.searchsorted(places, position, side="right")) - 1
        after = int(np.searchsorted(places, position, side="left"))
        old_mean, old_variance, new_mean, new_variance = self._sides
        step = self.gaps.sum()
        inside = max(below * step - self.gaps[:cut].sum(), 0.0) if after > cut else 0.0
        split = slice(cut, after)
        chances = [self.gaps[:cut], self.gaps[split] * 0 + inside]
        chances += [np.maximum(self.gaps[split] - inside, 0.0), self.gaps[after:]]
        means = [
            new_mean[:, :after],
            old_mean[:, cut:],
            self._whole[0],
            self._slope_rates(position),
        ]
        variances = [new_variance[:, :after], old_variance[:, cut:], self._whole[1]]
        variances.append(self._whole[1] * 2)
        return Explanations(
            np.concatenate([*chances, [self.none, self.slope]]),
            np.concatenate(means, axis=1).T,
            np.concatenate(variances, axis=1).T,
        )

    def _slope_rates(self, position: int) -> Floats:
        x = np.array([position / max(int(self.tally.positions[-1]), 1)])
        return self._straight.rates(x)


def credible_range(distribution: Floats, mass: float) -> tuple[int, int]:
    """Shortest run of positions (inclusive) that holds `mass` of the distribution's total."""
    goal = mass * distribution.sum() * (1 - 1e-12)
    sums = np.concatenate([[0.0], distribution.cumsum()])
    starts = np.arange(len(distribution))
    stops = np.searchsorted(sums, sums[:-1] + goal, side="left")
    valid = stops <= len(distribution)
    lengths = np.where(valid, stops - starts, len(distribution) + 1)
    start = int(lengths.argmin())
    return start, int(max(start, stops[start] - 1))
