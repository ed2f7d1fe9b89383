"""Exact power of the exact McNemar test, for what a run at hand could have shown.

Model: each question is discordant with probability psi; a discordant one is lost with probability
(psi + d) / (2 psi), so that accuracy falls by d. Power is the chance of a significant *drop*.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from poolbisect.evidence.power import ALPHA, POWER, questions_paired

# Beyond this many questions the approximation is within 1 % and the exact sum slow.
_LARGE = 50_000


def mcnemar_power(n: int, drop: float, discordant: float, alpha: float = ALPHA) -> float:
    """Chance that `n` paired questions show a drop as significant by the exact test.

    Sums over the number of discordant pairs, binomial in `n` (Duffy 1984, Biometrics 40:1005).
    Raises ValueError unless `0 <= drop <= discordant <= 1` and `n >= 0`.
    """
    if not (0 <= drop <= discordant <= 1 and n >= 0):
        raise ValueError(f"impossible plan: n={n}, drop={drop}, discordant={discordant}")
    if discordant == 0:
        return 0.0
    pairs = np.arange(n + 1)
    # Most gained questions at which the two-sided p, twice the tail, is still at most alpha.
    critical = binom.ppf(alpha / 2, pairs, 0.5)
    critical = np.where(2 * binom.cdf(critical, pairs, 0.5) > alpha, critical - 1, critical)
    gained = (discordant - drop) / (2 * discordant)
    significant = np.where(critical < 0, 0.0, binom.cdf(critical, pairs, gained))
    return float(np.sum(binom.pmf(pairs, n, discordant) * significant))


def detectable_drop_over_flips(
    n: int, flips: float, power: float = POWER, alpha: float = ALPHA, largest: float = 1.0
) -> float | None:
    """Smallest drop that `n` paired questions show where a share `flips` of them flips anyway.

    The drop adds its own discordant pairs to the flips. None if even a drop of `largest` (at
    most the accuracy there is to lose) would not show.
    """
    ceiling = min(largest, 1.0 - flips)

    def surplus(drop: float) -> float:
        return mcnemar_power(n, drop, min(1.0, flips + drop), alpha) - power

    if ceiling <= 0 or surplus(ceiling) < 0:
        return None
    return float(brentq(surplus, 0.0, ceiling, xtol=1e-6))


def questions_over_flips(
    drop: float, flips: float, power: float = POWER, alpha: float = ALPHA
) -> int:
    """Paired questions that show a drop where a share `flips` of them flips anyway, within 0.5 %.

    Starts at the approximation of `questions_paired` and goes up until the exact power suffices;
    plans of more than 50,000 questions stay at the approximation.
    Raises ValueError unless `drop` is positive and `flips + drop` at most 1.
    """
    discordant = flips + drop
    n = questions_paired(drop, discordant, power, alpha)
    while n <= _LARGE and mcnemar_power(n, drop, discordant, alpha) < power:
        n += max(1, n // 200)
    return n
