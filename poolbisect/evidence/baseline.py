"""One score against a recorded mean and spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

import numpy as np
from scipy.stats import norm, t

from poolbisect.evidence.dispersion import sample_sd
from poolbisect.evidence.gates import Gate, GateCheck, check_gate
from poolbisect.evidence.power import ALPHA, POWER
from poolbisect.evidence.verdict import Verdict


class SpreadKind(StrEnum):
    """What a baseline's "±" is."""

    RUN_TO_RUN = "run-to-run"
    """Standard deviation between runs on the same questions."""
    BINOMIAL = "binomial"
    """Sampling error sqrt(p (1 - p) / n) of drawing the questions."""


@dataclass(frozen=True, slots=True)
class BaselineScore:
    """Mean and standard deviation of healthy scores; `runs` of them, where known."""

    mean: float
    sd: float
    runs: int | None = None
    spread: SpreadKind = SpreadKind.RUN_TO_RUN

    def __post_init__(self) -> None:
        if not (0 <= self.mean <= 1 and self.sd >= 0):
            raise ValueError(f"impossible baseline: mean {self.mean}, sd {self.sd}")
        if self.runs is not None and self.runs < 2:
            raise ValueError(f"a spread needs at least two runs, got {self.runs}")


def baseline_of(scores: Sequence[float]) -> BaselineScore:
    """Baseline of at least two healthy scores, with their run-to-run standard deviation."""
    if len(scores) < 2:
        raise ValueError(f"a spread needs at least two runs, got {len(scores)}")
    return BaselineScore(float(np.mean(scores)), sample_sd(scores), len(scores))


def z_score(score: float, baseline: BaselineScore) -> float:
    """Departure of a score from the baseline in its standard deviations.

    Infinite, with the sign of the change, where a baseline without any spread is departed from.
    """
    difference = score - baseline.mean
    if baseline.sd == 0:
        return 0.0 if difference == 0 else float(np.copysign(np.inf, difference))
    return difference / baseline.sd


def baseline_p_value(score: float, baseline: BaselineScore) -> float:
    """Two-sided p-value of a score, given the baseline.

    Normal where the baseline's runs are not known; else Student's t with `runs - 1` degrees of
    freedom on z / sqrt(1 + 1/runs), which allows for mean and spread being estimates themselves
    (prediction interval of one further run; Hahn & Meeker 1991, chapter 4).
    """
    z = abs(z_score(score, baseline))
    if baseline.runs is None or baseline.spread is SpreadKind.BINOMIAL:
        return float(2 * norm.sf(z))
    return float(2 * t.sf(z / sqrt(1 + 1 / baseline.runs), baseline.runs - 1))


@dataclass(frozen=True, slots=True)
class ScoreJudgement:
    """A score against its baseline, and against its gate where it has one.

    The two are apart: a score can pass its gate and still be a significant drop.
    """

    verdict: Verdict
    reason: str
    z: float
    p_value: float
    difference: float
    significant: bool
    detectable: float
    gate: GateCheck | None = None


def judge_score(
    score: float,
    baseline: BaselineScore,
    *,
    smallest_drop_of_interest: float,
    gate: Gate | None = None,
    alpha: float = ALPHA,
    minimum_effect: float = 0.0,
    power: float = POWER,
) -> ScoreJudgement:
    """Judge one run's score against a comparable baseline; rules as in `verdict.judge`.

    A single score shows drops of (za + zb) standard deviations with probability `power`.
    """
    z, p_value = z_score(score, baseline), baseline_p_value(score, baseline)
    difference, significant = score - baseline.mean, p_value < alpha
    detectable = float(norm.isf(alpha / 2) + norm.ppf(power)) * baseline.sd
    change = f"{score:.4g} against {baseline.mean:.4g} ± {baseline.sd:.2g}: z = {z:.2f}"
    check = None if gate is None else check_gate(score, gate)
    if significant and difference < 0 and -difference >= minimum_effect - 1e-12:
        verdict = Verdict.BAD
        within = ", though it passes its gate" if check is not None and check.passed else ""
        reason = f"{change}, a significant drop{within}"
    elif (significant and difference > 0) or detectable <= smallest_drop_of_interest:
        verdict, reason = Verdict.GOOD, f"{change}, no drop that counts"
    else:
        verdict = Verdict.UNKNOWN
        reason = (
            f"{change}, not significant; one run shows only drops of {detectable * 100:.1f} points"
        )
    return ScoreJudgement(verdict, reason, z, p_value, difference, significant, detectable, check)
