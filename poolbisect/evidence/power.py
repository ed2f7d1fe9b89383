"""How many questions a drop needs, and the smallest drop a number of questions can show.

The planning formulas of the field, from normal approximations; `mcnemar_power` is exact. All
tests are two-sided at level `alpha`. Drops and shares are fractions of one (0.056 is 5.6 points).
Question counts are rounded to the nearest whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, sqrt

from scipy.optimize import brentq
from scipy.stats import norm

POWER = 0.9
ALPHA = 0.05


def questions_unpaired(
    before: float, after: float, power: float = POWER, alpha: float = ALPHA
) -> int:
    """Questions per run for the pooled z test to tell two accuracies apart.

    n = (za sqrt(2 p q) + zb sqrt(p1 q1 + p2 q2))^2 / (p1 - p2)^2 with p the mean of the two
    (Fleiss, Levin & Paik 2003, chapter 4, without continuity correction).
    """
    _check_shares(before=before, after=after)
    if before == after:
        raise ValueError("no number of questions tells two equal accuracies apart")
    return _whole(_unpaired(before, after, *_quantiles(power, alpha)))


def questions_paired(
    drop: float, discordant: float, power: float = POWER, alpha: float = ALPHA
) -> int:
    """Questions for McNemar's test to show a drop, given the share of discordant questions.

    n = (za sqrt(psi) + zb sqrt(psi - d^2))^2 / d^2, psi the discordant share, d the drop
    (Connor 1987, Biometrics 43:207). Raises ValueError unless `0 < drop <= discordant <= 1`.
    """
    _check_shares(drop=drop, discordant=discordant)
    if not 0 < drop <= discordant:
        raise ValueError(f"a drop of {drop} needs at least that share discordant, got {discordant}")
    return _whole(_paired(drop, discordant, *_quantiles(power, alpha)))


def detectable_drop_unpaired(
    n: int, before: float, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Smallest drop from accuracy `before` that `n` questions per run show; None if none is."""
    _check_shares(before=before)
    za, zb = _quantiles(power, alpha)
    return _smallest(lambda drop: n - _unpaired(before, before - drop, za, zb), before)


def detectable_drop_paired(
    n: int, discordant: float, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Smallest drop that `n` paired questions show at a given discordant share; None if none is.

    The inverse of `questions_paired`: no drop can exceed the discordant share.
    """
    _check_shares(discordant=discordant)
    za, zb = _quantiles(power, alpha)
    return _smallest(lambda drop: n - _paired(drop, discordant, za, zb), discordant)


def _unpaired(before: float, after: float, za: float, zb: float) -> float:
    mean = (before + after) / 2
    null = za * sqrt(2 * mean * (1 - mean))
    alternative = zb * sqrt(before * (1 - before) + after * (1 - after))
    return float(((null + alternative) / (before - after)) ** 2)


def _paired(drop: float, discordant: float, za: float, zb: float) -> float:
    spread = za * sqrt(discordant) + zb * sqrt(max(0.0, discordant - drop * drop))
    return float((spread / drop) ** 2)


def _smallest(surplus: Callable[[float], float], largest: float) -> float | None:
    """The drop in `(0, largest]` from which on `surplus` (questions to spare) is positive."""
    if largest <= 0 or surplus(largest) < 0:
        return None
    return float(brentq(surplus, 1e-9, largest))


def _quantiles(power: float, alpha: float) -> tuple[float, float]:
    if not (0 < alpha < 1 and 0 < power < 1):
        raise ValueError(f"alpha and power must lie between 0 and 1, got {alpha} and {power}")
    return float(norm.isf(alpha / 2)), float(norm.ppf(power))


def _whole(questions: float) -> int:
    return max(1, floor(questions + 0.5))


def _check_shares(**shares: float) -> None:
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}")
