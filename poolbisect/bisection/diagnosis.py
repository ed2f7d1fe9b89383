"""Signs that the step model does not hold: runs of one commit disagree, or nothing fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest, chi2

from poolbisect.bisection.counting import UNKNOWN, answers
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Observation

DISAGREE = 1e-6
"""p-value below which runs of one commit are called different: looked at after every probe."""
MISFIT = 1e-6
"""p-value below which no step is said to fit the commits' scores."""


def spread_p_value(counts: Sequence[tuple[float, float]], noise: Noise) -> float:
    """Pearson's chi-square that runs (right, asked) share one rate, beyond `noise.run`."""
    runs = [(r, n) for r, n in counts if n > 0]
    if len(runs) < 2:
        return 1.0
    right, asked = np.array(runs, dtype=float).T
    rate = (right.sum() + 0.5) / (asked.sum() + 1)
    if asked.min() * min(rate, 1 - rate) < 5:
        return 1.0
    effect = 1 + (asked - 1) * noise.run
    statistic = ((right - asked * rate) ** 2 / (asked * rate * (1 - rate) * effect)).sum()
    return float(chi2.sf(statistic, len(runs) - 1))


def runs_p_value(runs: Sequence[Observation], noise: Noise) -> float:
    """That the runs of one commit agree; on the same questions where outcomes are known."""
    if len(runs) < 2:
        return 1.0
    if any(run.outcomes is None for run in runs):
        return spread_p_value([(run.correct, run.asked) for run in runs], noise)
    layers = answers(runs)
    worst, pairs = 1.0, max(len(layers) - 1, 1)
    for later in layers[1:]:
        first = layers[0][: len(later)]
        both = (first != UNKNOWN) & (later != UNKNOWN)
        lost = int((both & (first == 1) & (later == 0)).sum())
        gained = int((both & (first == 0) & (later == 1)).sum())
        if lost + gained:
            worst = min(worst, float(binomtest(lost, lost + gained).pvalue))
    return min(1.0, worst * pairs)
