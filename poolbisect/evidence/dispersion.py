"""How much one subject's score moves between runs: A/A flips, over- and under-dispersion."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TypeVar

import numpy as np
from scipy.stats import chi2, f, t

from poolbisect.evidence.intervals import Interval, wilson

QuestionId = TypeVar("QuestionId", bound=Hashable)


def sample_sd(scores: Sequence[float]) -> float:
    """Standard deviation of a sample of at least two, exactly 0 where all are equal."""
    # Summing equal floating-point numbers and dividing need not return the number.
    if min(scores) == max(scores):
        return 0.0
    return float(np.std(scores, ddof=1))


@dataclass(frozen=True, slots=True)
class Flips:
    """A/A runs: the same subject over the same questions, several times.

    `share` is the share of questions that differ between two runs, on average over all pairs of
    runs; `flipping` counts questions that were not answered alike by all runs.
    """

    runs: int
    questions: int
    share: float
    flipping: int

    @property
    def interval(self) -> Interval:
        """95 % Wilson interval of the share, pairs of runs counted as one (so never too short)."""
        return wilson(round(self.share * self.questions), self.questions)

    @property
    def run_sd(self) -> float:
        """Run-to-run standard deviation of the score if questions flip independently.

        A question right with probability p flips between two runs with probability 2 p (1 - p)
        and adds p (1 - p) / n^2 to the variance of the score, hence sqrt(share / (2 n)).
        """
        return sqrt(self.share / (2 * self.questions))


def flips(runs: Sequence[Mapping[QuestionId, bool]]) -> Flips:
    """Count flips between at least two runs, over the questions that all of them answered.

    Raises ValueError with fewer than two runs or no shared question.
    """
    if len(runs) < 2:
        raise ValueError(f"flips need at least two runs of one subject, got {len(runs)}")
    shared = [question for question in runs[0] if all(question in run for run in runs)]
    if not shared:
        raise ValueError("the runs share no question")
    right = np.array([sum(bool(run[question]) for run in runs) for question in shared])
    pairs = len(runs) * (len(runs) - 1) / 2
    differing = right * (len(runs) - right)
    return Flips(
        runs=len(runs),
        questions=len(shared),
        share=float(differing.sum() / pairs / len(shared)),
        flipping=int(np.count_nonzero(differing)),
    )


@dataclass(frozen=True, slots=True)
class Dispersion:
    """Run-to-run spread of a score beside the binomial error of one run.

    `ratio` is the variance between runs over the binomial variance. Above 1 runs differ by more
    than the drawing of questions would explain (`p_over`); below 1 they share questions
    (`p_under`). `correlation` is the intra-class correlation rho of the beta-binomial model
    with that ratio, 1 + (n - 1) rho, and 0 where the ratio is below 1.
    """

    mean: float
    run_sd: float
    binomial_sd: float
    ratio: float
    correlation: float
    p_over: float
    p_under: float


def dispersion(scores: Sequence[float], questions: int) -> Dispersion:
    """Compare the spread of at least two scores over `questions` questions with the binomial one.

    (runs - 1) * ratio is chi-squared with runs - 1 degrees of freedom if runs are binomial
    (Pearson's dispersion test); rho by moments (Williams 1982, Appl Stat 31:144). Raises
    ValueError if the mean is 0 or 1, where a binomial has no spread.
    """
    if len(scores) < 2 or questions < 2:
        raise ValueError(f"need two runs and two questions, got {len(scores)} and {questions}")
    mean, variance = float(np.mean(scores)), sample_sd(scores) ** 2
    binomial = mean * (1 - mean) / questions
    if binomial <= 0:
        raise ValueError(f"a mean of {mean} leaves no binomial spread to compare with")
    ratio, freedom = variance / binomial, len(scores) - 1
    return Dispersion(
        mean=mean,
        run_sd=sqrt(variance),
        binomial_sd=sqrt(binomial),
        ratio=ratio,
        correlation=min(1.0, max(0.0, (ratio - 1) / (questions - 1))),
        p_over=float(chi2.sf(freedom * ratio, freedom)),
        p_under=float(chi2.cdf(freedom * ratio, freedom)),
    )


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """Scores of repeated runs before and after: change of the mean, and change of the spread.

    `t` and `p_value` are Welch's, which does not take the spreads for equal. `spread_ratio` is
    the standard deviation after over before; `spread_p_value` tells whether it changed.
    """

    difference: float
    t: float
    p_value: float
    sd_before: float
    sd_after: float
    spread_ratio: float
    spread_p_value: float


def compare_groups(before: Sequence[float], after: Sequence[float]) -> GroupComparison:
    """Compare repeated scores of two subjects (Welch 1947, Biometrika 34:28; F test of variances).

    A deterministic fault shrinks the spread, so the two are not pooled. Raises ValueError with
    fewer than two scores on a side or without any spread on both.
    """
    if min(len(before), len(after)) < 2:
        raise ValueError("a spread needs at least two scores on each side")
    sd_before, sd_after = sample_sd(before), sample_sd(after)
    if sd_before == 0 and sd_after == 0:
        raise ValueError("neither side has any spread: the scores are deterministic")
    difference = float(np.mean(after) - np.mean(before))
    errors = (sd_after**2 / len(after), sd_before**2 / len(before))
    statistic = difference / sqrt(sum(errors))
    welch = sum(errors) ** 2 / sum(
        e * e / (len(side) - 1) for e, side in zip(errors, (after, before), strict=True)
    )
    freedom = (len(after) - 1, len(before) - 1)
    if sd_before == 0:
        ratio, spread_p = float("inf"), 0.0
    else:
        ratio = sd_after / sd_before
        tail = min(f.sf(ratio**2, *freedom), f.cdf(ratio**2, *freedom))
        spread_p = float(min(1.0, 2 * tail))
    return GroupComparison(
        difference=difference,
        t=statistic,
        p_value=float(2 * t.sf(abs(statistic), welch)),
        sd_before=sd_before,
        sd_after=sd_after,
        spread_ratio=ratio,
        spread_p_value=spread_p,
    )
