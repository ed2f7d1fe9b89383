"""Run-to-run spread beyond the binomial error, and what it leaves of a count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolbisect.errors import UsageError


@dataclass(frozen=True, slots=True)
class Noise:
    """Intra-class correlations of answers that share a run, or share a commit.

    `run`: answers of one probe are correlated by this much (beta-binomial over-dispersion).
    `commit`: so are all answers of one commit, however often it is measured; 1 says that
    repeating a measurement teaches nothing, 0 (usual) that a commit has nothing of its own.
    """

    run: float = 0.0
    commit: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("run", self.run), ("commit", self.commit)):
            if not 0 <= value <= 1:
                raise UsageError(f"noise.{name} is {value}; give a correlation between 0 and 1")

    @classmethod
    def from_runs(cls, runs: Sequence[tuple[int, int]]) -> Noise:
        """`run` from A/A runs (correct, asked) of one commit: Pearson's chi-square, by moments.

        Kish design effect D = 1 + (n - 1) rho, with D estimated as chi2 / (runs - 1)
        (Williams, Applied Statistics 31, 1982, 144); never negative.
        """
        if len(runs) < 2 or any(asked < 1 or not 0 <= right <= asked for right, asked in runs):
            raise UsageError("over-dispersion needs two or more runs of 0 <= correct <= asked")
        right = np.array([r for r, _ in runs], dtype=float)
        asked = np.array([n for _, n in runs], dtype=float)
        rate = right.sum() / asked.sum()
        if rate in (0.0, 1.0):
            return cls()
        chi2 = float(((right - asked * rate) ** 2 / (asked * rate * (1 - rate))).sum())
        excess = chi2 - (len(runs) - 1)
        weight = float(((asked - 1) * (1 - asked / asked.sum())).sum())
        return cls(run=min(1.0, max(0.0, excess / weight))) if weight > 0 else cls()

    def run_weight(self, asked: float) -> float:
        """Share of a run's `asked` answers left as independent information: 1 / design effect."""
        return 1.0 / (1.0 + max(asked - 1.0, 0.0) * self.run)

    def commit_weight(self, asked: float) -> float:
        """The same for all (already run-weighted) answers of one commit."""
        return 1.0 / (1.0 + max(asked - 1.0, 0.0) * self.commit)
