"""How well each shape of history explains the counts: no step, one step, two steps, a slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, ndtr, xlog1py, xlogy

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tally:
    """Effective counts at the k measured positions, in S strata of questions (1 if unpaired).

    `positions` (k,) ascending, first 0 and last n - 1; `right` and `asked` (S, k), may be
    fractions after the noise's design effect. `share` (S,): part of all questions in each stratum.
    """

    positions: NDArray[np.int64]
    right: Floats
    asked: Floats
    share: Floats


class Prior(NamedTuple):
    """Beta prior of a rate of right answers."""

    right: float = 0.5
    wrong: float = 0.5


def log_marginal(prior: Prior, right: Floats, asked: Floats) -> Floats:
    """ln of the beta-binomial integral over one rate, summed over strata (axis 0)."""
    whole = betaln(prior.right + right, prior.wrong + asked - right)
    return np.asarray((whole - betaln(*prior)).sum(axis=0))


def mean_and_variance(prior: Prior, right: Floats, asked: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and variance of a rate."""
    total = prior.right + prior.wrong + asked
    mean = (prior.right + right) / total
    return mean, mean * (1 - mean) / (total + 1)


class Cumulative(NamedTuple):
    """Counts in front of each of the k + 1 places between measured positions; both (S, k + 1)."""

    right: Floats
    asked: Floats

    @classmethod
    def of(cls, tally: Tally) -> Cumulative:
        zero = np.zeros((tally.right.shape[0], 1))
        return cls(
            np.concatenate([zero, tally.right.cumsum(axis=1)], axis=1),
            np.concatenate([zero, tally.asked.cumsum(axis=1)], axis=1),
        )


def no_step(old: Prior, new: Prior, sums: Cumulative) -> float:
    """One rate for all; of the two priors, each is taken half the time."""
    right, asked = sums.right[:, -1:], sums.asked[:, -1:]
    either = [log_marginal(prior, right, asked)[0] for prior in (old, new)]
    return float(np.logaddexp(either[0], either[1]) - np.log(2))


def one_step(old: Prior, new: Prior, sums: Cumulative) -> Floats:
    """A step in each of the k - 1 gaps, shape (k - 1,)."""
    left_r, left_n = sums.right[:, 1:-1], sums.asked[:, 1:-1]
    return log_marginal(old, left_r, left_n) + log_marginal(
        new, sums.right[:, -1:] - left_r, sums.asked[:, -1:] - left_n
    )


class TwoSteps(NamedTuple):
    """Each pair of gaps first <= second, with the chance that the first one crosses the rule."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    log_likelihood: Floats
    first_crosses: Floats


def two_steps(
    old: Prior, new: Prior, sums: Cumulative, tally: Tally, rule: float | None
) -> TwoSteps:
    """A free third rate (Jeffreys) between two steps.

    `rule` is the rate that separates good from bad; by default half way between the outer rates.
    """
    gaps = sums.right.shape[1] - 2
    first, second = np.triu_indices(gaps)
    cut1, cut2 = (c[:, first + 1] for c in sums), (c[:, second + 1] for c in sums)
    (r1, n1), (r2, n2) = cut1, cut2
    total_r, total_n = sums.right[:, -1:], sums.asked[:, -1:]
    middle = Prior()
    fit = (
        log_marginal(old, r1, n1)
        + log_marginal(middle, r2 - r1, n2 - n1)
        + log_marginal(new, total_r - r2, total_n - n2)
    )
    share = tally.share[:, None]
    outer = [
        (share * mean_and_variance(prior, r, n)[0]).sum(axis=0)
        for prior, r, n in ((old, r1, n1), (new, total_r - r2, total_n - n2))
    ]
    mean, variance = mean_and_variance(middle, r2 - r1, n2 - n1)
    level = (share * mean).sum(axis=0)
    spread = np.sqrt((share**2 * variance).sum(axis=0))
    line = (outer[0] + outer[1]) / 2 if rule is None else np.full(level.shape, rule)
    towards = np.where(outer[1] < outer[0], line - level, level - line)
    crosses = np.where(first == second, 1.0, ndtr(towards / spread))
    return TwoSteps(first, second, fit, np.asarray(crosses))


class Slope(NamedTuple):
    """`log_likelihood` of the shape, and the log-odds fitted at both ends, (S, 2)."""

    log_likelihood: float
    ends: Floats

    def rates(self, x: Floats) -> Floats:
        """Rates at positions `x`, given as a share of the range, (S, len(x))."""
        return np.asarray(expit(self.ends @ np.stack([1 - x, x])))


def slope(old: Prior, new: Prior, tally: Tally) -> Slope:
    """Log-odds that run straight from one end's rate to the other's, per stratum.

    Both ends' rates have the priors of the two sides of a step, so the shapes differ in shape
    only. Laplace approximation at the mode in the ends' log-odds (the integrand is log-concave).
    """
    x = tally.positions / max(int(tally.positions[-1]), 1)
    basis = np.stack([1 - x, x])
    pull = np.array([old, new])
    total = pull.sum(axis=1)
    result, fitted = 0.0, []
    for right, asked in zip(tally.right, tally.asked, strict=True):
        ends = np.zeros(2)
        overall = (right.sum() + 0.5) / (asked.sum() + 1)
        ends[:] = np.log(overall / (1 - overall))
        hessian = np.eye(2)
        for _ in range(30):
            p, q = expit(ends @ basis), expit(ends)
            gradient = basis @ (right - asked * p) + pull[:, 0] - total * q
            hessian = (basis * (asked * p * (1 - p))) @ basis.T + np.diag(total * q * (1 - q))
            step = np.linalg.solve(hessian, gradient)
            ends = ends + np.clip(step, -2, 2)
            if np.abs(step).max() < 1e-6:
                break
        p, q = expit(ends @ basis), expit(ends)
        fit = (xlogy(right, p) + xlog1py(asked - right, -p)).sum()
        prior = (pull[:, 0] * np.log(q) + pull[:, 1] * np.log1p(-q) - betaln(*pull.T)).sum()
        result += float(fit + prior + np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(hessian)[1])
        fitted.append(ends)
    return Slope(result, np.array(fitted))
