"""How often a configuration is launched, and what it takes to call it bad."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

from poolbisect.errors import UsageError

CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True)
class Plan:
    """`repeats`: launches of one configuration at most, for one verdict; None for as many as
    `noise` asks for. `noise`: the chance that the verdict of a single launch is wrong.
    `alpha`, `smallest_drop` (a share of one): as in poolbisect.evidence.verdict. `gate`: the score
    that all switches off must reach, None if it is taken as the standard. UsageError when
    inconsistent.
    """

    repeats: int | None = None
    noise: float = 0.0
    alpha: float = 0.001
    smallest_drop: float = 0.02
    gate: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 0.5:
            raise UsageError(f"--noise {self.noise:g}: give a share from 0 up to, not with, 0.5")
        if self.repeats is not None and self.repeats < self.lead:
            raise UsageError(
                f"--repeats {self.repeats}: with --noise {self.noise:g} a verdict needs a lead of "
                f"{self.lead} launches; give at least as many"
            )

    @property
    def lead(self) -> int:
        """By how many launches one verdict must lead the other.

        Wald's sequential probability ratio test (1945) between a good and a bad configuration,
        for a known and symmetric chance of error and both errors at most 1 - CONFIDENCE.
        """
        if self.noise == 0:
            return 1
        return ceil(log(CONFIDENCE / (1 - CONFIDENCE)) / log((1 - self.noise) / self.noise) - 1e-9)

    @property
    def most(self) -> int:
        """Launches of one configuration for one verdict, at most."""
        if self.repeats is not None:
            return self.repeats
        return 1 if self.noise == 0 else 5 * self.lead
