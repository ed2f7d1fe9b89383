"""What a series of nightly scores was found to do, and the facts behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from poolbisect.evidence.environment import VersionChange

SAME_NIGHTS = 3
"""Nights in a row with exactly one score from which on a series counts as deterministic."""


class SeriesKind(StrEnum):
    """What a series does."""

    STEADY = "steady"
    STEP = "step"
    DRIFT = "drift"
    TWO_VALUED = "two-valued"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of level: `index` is the first night on the new one, 0 meaning before the series.

    The true place lies in `first`..`last` with 95 % credibility. `code_changed` is None where a
    revision in that range was not recorded. `runner` holds the two runners where they differ.
    """

    index: int
    first: int
    last: int
    before: float
    after: float
    code_changed: bool | None = None
    changes: tuple[VersionChange, ...] = ()
    runner: tuple[str, str] | None = None

    @property
    def change(self) -> float:
        """Level after minus before; negative is a drop."""
        return self.after - self.before

    @property
    def is_environment(self) -> bool:
        """The level changed although the code is known not to have."""
        return self.code_changed is False

    @property
    def confounded(self) -> tuple[str, ...]:
        """What changed on the same night and could be the cause instead of the code."""
        named = (("dependencies", bool(self.changes)), ("runner", self.runner is not None))
        return tuple(name for name, changed in named if changed)


@dataclass(frozen=True, slots=True)
class SeriesFinding:
    """The kind of a series and the facts behind it.

    `p_value` is adjusted for all tests made; `slope` is the change per night of a drift;
    `by_runner` the mean score of each runner where the series follows the runner; `levels` the
    two values of a two-valued series; `same_nights` how many nights at the end score exactly
    alike; `changes` dependency changes that come with the finding; `sd` the night-to-night noise
    left; `noisier` that the recorded spread was too small for this series and was not used.
    """

    kind: SeriesKind
    summary: str
    p_value: float
    sd: float
    transitions: tuple[Transition, ...] = ()
    slope: float = 0.0
    by_runner: dict[str, float] = field(default_factory=dict)
    levels: tuple[float, float] | None = None
    same_nights: int = 1
    changes: tuple[VersionChange, ...] = ()
    noisier: bool = False

    @property
    def deterministic(self) -> bool:
        """The last three nights or more have exactly the same score."""
        return self.same_nights >= SAME_NIGHTS

    @property
    def first_bad(self) -> Transition | None:
        """First drop of a step series that the code may have caused; None for other kinds."""
        if self.kind is not SeriesKind.STEP:
            return None
        drops = (t for t in self.transitions if t.change < 0 and not t.is_environment)
        return next(drops, None)

    @property
    def first_fixed(self) -> Transition | None:
        """First rise after `first_bad`."""
        bad = self.first_bad
        if bad is None:
            return None
        return next((t for t in self.transitions if t.index > bad.index and t.change > 0), None)
