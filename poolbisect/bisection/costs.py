"""What a probe costs and what it can teach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from poolbisect.errors import UsageError

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, slots=True)
class CostModel:
    """Prices in any one unit (seconds, dollars, questions): only their ratios matter.

    `switch`: bring up another commit (check out, build, start). `question`: one more question.
    `probe`: fixed price of each probe at a commit that is already up.
    """

    switch: float = 2000.0
    question: float = 1.0
    probe: float = 0.0

    def __post_init__(self) -> None:
        if self.switch < 0 or self.question <= 0 or self.probe < 0:
            raise UsageError("costs need question > 0, switch >= 0 and probe >= 0")


def entropy(p: ArrayLike) -> Floats:
    """Entropy in nats of a yes/no with probability `p`."""
    q = np.asarray(p, dtype=float)
    return np.asarray(-(xlogy(q, q) + xlogy(1 - q, 1 - q)))


def information(chances: Floats, means: Floats, deviations: Floats) -> Floats:
    """Expected nats about which of K sources a normal reading came from, shape (M,).

    For M readings: `chances` (K,) or (M, K), sum 1; `means`, `deviations` (M, K). Mutual
    information E[ln p(y | k) - ln p(y)], by Gauss-Hermite quadrature around each source.
    """
    weight = np.broadcast_to(np.maximum(chances, 1e-300), means.shape)
    reading = means[:, :, None] + deviations[:, :, None] * _NODES
    # Axes: reading, true source, node, supposed source.
    away = (reading[..., None] - means[:, None, None, :]) / deviations[:, None, None, :]
    density = np.log(weight / deviations)[:, None, None, :] - away**2 / 2
    top = density.max(axis=-1)
    mixture = top + np.log(np.exp(density - top[..., None]).sum(axis=-1))
    own = -np.log(deviations)[:, :, None] - _NODES**2 / 2
    gain = (weight[:, :, None] * _WEIGHTS * (own - mixture)).sum(axis=(1, 2))
    return np.asarray(np.maximum(gain, 0.0))
