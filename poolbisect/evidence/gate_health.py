"""Whether a gate is any use: too noisy, always failing, or never failing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

import numpy as np
from scipy.stats import norm

from poolbisect.evidence.dispersion import sample_sd
from poolbisect.evidence.gates import Gate, check_gate


class GateFault(StrEnum):
    """What is wrong with a gate."""

    NOISY = "noisy"
    """Healthy builds fail it more often than tolerated."""
    ALWAYS_FAILS = "always fails"
    """The healthy mean does not pass it."""
    NEVER_FAILS = "never fails"
    """A build that lost as much as the dead drop still passes it."""


@dataclass(frozen=True, slots=True)
class GateHealth:
    """Rates of a gate under a normal model of healthy scores.

    `false_fail_rate` is the chance that a healthy run fails, `miss_rate` that a run after
    `dead_drop` passes; `observed` is failed and all runs where they were counted;
    `suggested` is a gate of the same strictness that healthy runs fail at most at the
    tolerated rate.
    """

    faults: tuple[GateFault, ...]
    false_fail_rate: float
    miss_rate: float
    suggested: Gate
    dead_drop: float
    observed: tuple[int, int] | None = None


def false_fail_rate(mean: float, sd: float, gate: Gate, questions: int | None = None) -> float:
    """Chance that a healthy run, normal with `mean` and `sd`, fails the gate.

    With `questions` the score moves in steps of 1/questions and may equal the gate, so the tail
    ends half-way between the best failing and the worst passing score (continuity correction).
    With `sd == 0` the rate is 0 or 1.
    """
    if sd == 0:
        return 0.0 if check_gate(mean, gate).passed else 1.0
    edge = gate.value
    if questions is not None:
        bar = gate.value * questions
        failing = floor(bar + 1e-9) if gate.strict else ceil(bar - 1e-9) - 1
        edge = (failing + 0.5) / questions
    return float(norm.cdf((edge - mean) / sd))


def gate_health(
    mean: float,
    sd: float,
    gate: Gate,
    *,
    questions: int | None = None,
    tolerated: float = 0.001,
    dead_drop: float = 0.1,
    observed: tuple[int, int] | None = None,
) -> GateHealth:
    """Judge a gate by the mean and run-to-run standard deviation of healthy scores.

    `always fails`: healthy runs fail at least half the time. `noisy`: more often than
    `tolerated`. `never fails`: after a drop of `dead_drop` a run still passes with a
    probability of at least 1 - `tolerated`. The suggested gate lies where the tolerated rate is
    met, rounded down to three digits.
    """
    if sd < 0 or not 0 < tolerated < 0.5:
        raise ValueError(f"impossible: sd {sd}, tolerated {tolerated}")
    rate = false_fail_rate(mean, sd, gate, questions)
    miss = 1 - false_fail_rate(max(0.0, mean - dead_drop), sd, gate, questions)
    faults = []
    if rate >= 0.5:
        faults.append(GateFault.ALWAYS_FAILS)
    elif rate > tolerated:
        faults.append(GateFault.NOISY)
    if miss >= 1 - tolerated:
        faults.append(GateFault.NEVER_FAILS)
    return GateHealth(
        faults=tuple(faults),
        false_fail_rate=rate,
        miss_rate=miss,
        suggested=_gate_that_holds(mean, sd, gate.strict, questions, tolerated),
        dead_drop=dead_drop,
        observed=observed,
    )


def gate_health_of(
    scores: Sequence[float],
    gate: Gate,
    *,
    questions: int | None = None,
    tolerated: float = 0.001,
    dead_drop: float = 0.1,
) -> GateHealth:
    """Judge a gate by at least two healthy scores, counting which of them it failed."""
    if len(scores) < 2:
        raise ValueError(f"a spread needs at least two runs, got {len(scores)}")
    failed = sum(not check_gate(score, gate).passed for score in scores)
    return gate_health(
        float(np.mean(scores)),
        sample_sd(scores),
        gate,
        questions=questions,
        tolerated=tolerated,
        dead_drop=dead_drop,
        observed=(failed, len(scores)),
    )


def _gate_that_holds(
    mean: float, sd: float, strict: bool, questions: int | None, tolerated: float
) -> Gate:
    bar = mean - float(norm.isf(tolerated)) * sd
    if sd == 0:
        # Floating point must not push a mean of 0.855 down to 0.854.
        bar += 1e-9 - (0.001 if strict else 0.0)
    elif questions is not None:
        # Half a step above the best failing score must not lie above the tail.
        bar = floor(bar * questions + (-0.5 if strict else 0.5)) / questions
    return Gate(min(1.0, max(0.0, floor(bar * 1000) / 1000)), strict)
