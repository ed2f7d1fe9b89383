"""Stop a paired run as soon as the evidence suffices, without paying for looking early.

Testing by betting (Waudby-Smith & Ramdas 2024, JRSS B 86:1; Ville's inequality). Each question
pays X = -1 (lost), +1 (gained) or 0. A gambler who bets against a null hypothesis has capital
whose expectation never grows while the null holds, so it ever reaches 1/a with probability at
most a, however often one looks. Two gamblers play:

* against "no drop" (E X >= 0): capital prod(1 - s X); at 1/alpha the subject is bad;
* against "a drop of at least d" (E X <= -d): capital prod(1 + s (X + d)); at 1/beta it is good.

Each averages over a grid of stakes s, which keeps both properties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbisect.evidence.verdict import Verdict

_STAKES = np.geomspace(0.01, 0.95, 25)


@dataclass(frozen=True, slots=True)
class SequentialState:
    """Where a run stands: `p_drop` and `p_no_drop` are always-valid p-values of the two nulls.

    `p_drop` small speaks for a drop, `p_no_drop` small against a drop of interest.
    """

    verdict: Verdict
    p_drop: float
    p_no_drop: float
    asked: int


class SequentialTest:
    """Always-valid decision between "no drop" and "a drop of at least `drop`".

    A subject without a drop is ever called bad with probability at most `alpha`; one with a drop
    of at least `drop` is ever called good with probability at most `beta`. A verdict once
    reached stays. Until then it is `unknown`.
    """

    def __init__(self, drop: float, alpha: float = 0.025, beta: float = 0.1) -> None:
        if not (0 < drop < 1 and 0 < alpha < 1 and 0 < beta < 1):
            raise ValueError(f"drop, alpha, beta must lie in (0, 1), got {drop}, {alpha}, {beta}")
        self.drop, self.alpha, self.beta = drop, alpha, beta
        self.lost = self.gained = self.concordant = 0
        self._p_drop = self._p_no_drop = 1.0
        self._verdict = Verdict.UNKNOWN

    def update(self, before: bool, after: bool) -> SequentialState:
        """Take one question, answered rightly or not by the reference and by the subject."""
        return self.add(
            lost=int(before and not after),
            gained=int(after and not before),
            concordant=int(before == after),
        )

    def add(self, lost: int = 0, gained: int = 0, concordant: int = 0) -> SequentialState:
        """Take a batch of questions by their counts; the look comes after the batch."""
        if min(lost, gained, concordant) < 0:
            raise ValueError("counts cannot be negative")
        self.lost += lost
        self.gained += gained
        self.concordant += concordant
        self._p_drop = min(self._p_drop, self._p(-_STAKES, 0.0))
        # The worst payment is -1 + d, so stakes up to 1 keep the capital positive.
        self._p_no_drop = min(self._p_no_drop, self._p(_STAKES, self.drop))
        if self._verdict is Verdict.UNKNOWN:
            if self._p_drop <= self.alpha:
                self._verdict = Verdict.BAD
            elif self._p_no_drop <= self.beta:
                self._verdict = Verdict.GOOD
        return self.state

    @property
    def state(self) -> SequentialState:
        asked = self.lost + self.gained + self.concordant
        return SequentialState(self._verdict, self._p_drop, self._p_no_drop, asked)

    def _p(self, stakes: NDArray[np.float64], shift: float) -> float:
        """One over the mean capital of stakes on X + shift, capped at 1."""
        capital = (
            self.lost * np.log1p(stakes * (shift - 1))
            + self.gained * np.log1p(stakes * (shift + 1))
            + self.concordant * np.log1p(stakes * shift)
        )
        # The largest is taken out first, since capital outgrows floating point in long runs.
        largest = capital.max()
        log_mean = largest + np.log(np.exp(capital - largest).mean())
        return float(np.exp(min(0.0, -log_mean)))
