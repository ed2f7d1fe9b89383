"""The measuring part of a night: one scenario after the other, each saved and recorded at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from poolbisect.errors import PoolbisectError
from poolbisect.measurement import Ended
from poolbisect.nightly.document import NightReport, night_document, night_id, write
from poolbisect.nightly.findings import NightVerdict
from poolbisect.nightly.judging import judge_night
from poolbisect.nightly.measuring import (
    MeasuredScenario,
    available,
    measure_scenario,
    tonight_of,
)
from poolbisect.nightly.request import Display, NightRequest
from poolbisect.nightly.subjects import Failure, NightSubject
from poolbisect.reporting.folder import new_folder
from poolbisect.scenario import Scenario
from poolbisect.store import Store, record_run


@dataclass(slots=True)
class RunningNight:
    """What is known so far of a night.

    `history` is None where the database cannot be used; `bisects` are the folders of searches.
    """

    request: NightRequest
    folder: Path
    started: datetime
    environment: dict[str, Any]
    history: Store | None = None
    measured: list[MeasuredScenario] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    bisects: list[Path] = field(default_factory=list)
    interrupted: bool = False
    clock: float = field(default_factory=time.perf_counter)

    def fail(self, scenario: str | None, error: object) -> None:
        """A part could not be done; the others go on."""
        self.failures.append(Failure(scenario, str(error)))

    def so_far(self) -> NightReport:
        """The night as it stands, without its past: what is on disk if it is cut off."""
        series = [tonight for one in self.measured for _, tonight in tonight_of(one)]
        return NightReport(
            id=night_id(self.folder, self.started),
            folder=self.folder,
            started=self.started,
            seconds=time.perf_counter() - self.clock,
            verdict=NightVerdict.INTERRUPTED,
            partial=True,
            joint=judge_night(series, self.request.rules),
            failures=tuple(self.failures),
            command=self.request.command,
            environment=self.environment,
            window=self.request.config.window,
        )

    @property
    def parts(self) -> list[Path]:
        """The folders of all that has a report of its own."""
        return [*(one.folder for one in self.measured), *self.bisects]

    def save(self) -> None:
        write(night_document(self.so_far()), self.folder)

    def record(self, document: dict[str, Any], folder: Path) -> str | None:
        """Put a run into the database; its id, None if it is not recorded."""
        if self.history is None:
            return None
        try:
            return record_run(self.request.store, document, folder)
        except PoolbisectError as error:
            self.fail(str(document["scenario"]), f"measured, but not recorded: {error}")
            return None


def measure(
    night: RunningNight,
    scenarios: Sequence[Scenario],
    subjects: Sequence[NightSubject],
    display: Display,
) -> None:
    """Measure all scenarios; one that fails stops no other, an interrupt ends it."""
    night.save()
    for number, scenario in enumerate(scenarios, 1):
        try:
            _one(night, scenario, subjects, display, number, len(scenarios))
        except KeyboardInterrupt:
            night.interrupted = True
            return
        except PoolbisectError as error:
            night.fail(scenario.name, error)
            continue
        except Exception as error:  # a fault of ours in one scenario must not lose the others
            night.fail(scenario.name, f"{type(error).__name__}: {error}")
            continue
        if night.interrupted:
            return


def _one(
    night: RunningNight,
    scenario: Scenario,
    subjects: Sequence[NightSubject],
    display: Display,
    number: int,
    count: int,
) -> None:
    request = night.request
    left, failures = available(scenario, subjects, request.repo)
    night.failures += failures
    while left:
        measured = measure_scenario(
            scenario,
            left,
            questions=request.config.questions,
            repo=request.repo,
            folder=new_folder(request.out, scenario.name),
            watch=display.scenario(scenario.name, number, count),
            record=night.record,
        )
        night.measured.append(measured)
        night.save()
        verdicts = {one.measurement.subject: one for one in measured.report.verdicts}
        night.interrupted = any(one.measurement.ended is Ended.PARTIAL for one in verdicts.values())
        # A run leaves its reference out if nothing else can be served; a night asks for it alone.
        missing = [one for one in left if one.subject not in verdicts]
        left = missing if len(missing) < len(left) and not night.interrupted else []
