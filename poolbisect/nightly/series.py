"""A series: what makes its nights comparable, and what is known of it tonight. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from poolbisect.baselines import Baseline
from poolbisect.judging import SubjectVerdict
from poolbisect.measurement import Ended, Measurement
from poolbisect.nightly.past import PastNight
from poolbisect.scenario import Scenario


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What makes two nights comparable: the scenario, its workload (a digest), the role."""

    scenario: str
    workload: str
    role: str

    def __str__(self) -> str:
        return f"{self.scenario} ({self.role})"


@dataclass(frozen=True, slots=True)
class LastGood:
    """The last good night of a series and its answers, as far as they are still recorded."""

    night: PastNight
    outcomes: Mapping[str, bool] = field(default_factory=dict)
    accept_lengths: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tonight:
    """A series tonight: what was measured, what `run` concluded of it, and what is known of it.

    `reference` is None where the subject is the reference of its scenario itself; `baseline` only
    one that is comparable; `run` its id in the database and `folder` its place.
    """

    key: SeriesKey
    subject: str
    scenario: Scenario
    verdict: SubjectVerdict
    reference: Measurement | None = None
    baseline: Baseline | None = None
    past: tuple[PastNight, ...] = ()
    last_good: LastGood | None = None
    revision: str | None = None
    run: str | None = None
    folder: Path | None = None

    @property
    def measurement(self) -> Measurement:
        return self.verdict.measurement

    @property
    def measured(self) -> bool:
        return self.measurement.ended is Ended.MEASURED

    @property
    def weights(self) -> str | None:
        """Digest of the model's weights, None where none was loaded."""
        digest = self.measurement.provenance.get("model_sha256")
        return None if digest is None else str(digest)[:16]

    @property
    def uncovered(self) -> bool:
        """Whether the last request slot was not used on every rank: a good score proves nothing."""
        slots = self.measurement.slots
        return slots is not None and not slots.last_slot_used
