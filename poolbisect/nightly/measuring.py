"""One scenario of a night: measure its subjects, save the run, record it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.baselines import load_baselines, run_key
from poolbisect.canary import RunReport, RunRequest, Watch, run
from poolbisect.errors import PoolbisectError
from poolbisect.judging import SubjectVerdict
from poolbisect.measurement import Measurement
from poolbisect.nightly.series import SeriesKey, Tonight
from poolbisect.nightly.subjects import Failure, NightSubject
from poolbisect.probes.miniature import Settings
from poolbisect.probes.subjects import resolve
from poolbisect.reporting import result_json
from poolbisect.scenario import Scenario
from poolbisect.subject import parse_subject

DEVICE = "cpu"


@dataclass(frozen=True, slots=True)
class MeasuredScenario:
    """A scenario's run of tonight, in its folder. `run` is its id in the store, if recorded."""

    report: RunReport
    subjects: tuple[NightSubject, ...]
    folder: Path
    run: str | None = None

    @property
    def scenario(self) -> Scenario:
        return self.report.scenario


def available(
    scenario: Scenario, subjects: Sequence[NightSubject], repo: Path | None
) -> tuple[list[NightSubject], list[Failure]]:
    """The subjects whose code is to be had; one that is not does not stop the others."""
    found: list[NightSubject] = []
    failures: list[Failure] = []
    for one in subjects:
        try:
            resolve(parse_subject(one.subject), repo, scenario.pools)
        except PoolbisectError as error:
            failures.append(Failure(scenario.name, f"{one.subject}: {error}"))
        else:
            found.append(one)
    return found, failures


def measure_scenario(
    scenario: Scenario,
    subjects: Sequence[NightSubject],
    *,
    questions: int | None,
    repo: Path | None,
    folder: Path,
    watch: Watch | None = None,
    record: Callable[[dict[str, Any], Path], str | None] | None = None,
) -> MeasuredScenario:
    """Run a scenario and save it into `folder`; `record` puts the run into the store.

    The folder is taken away again if nothing came of it.
    """
    try:
        names = tuple(one.subject for one in subjects)
        settings = Settings(device=DEVICE)
        report = run(RunRequest(scenario, names, questions, settings, repo), watch)
    except BaseException:
        with suppress(OSError):
            folder.rmdir()
        raise
    document = result_json.save(report, folder)
    recorded = None if record is None else record(document, folder)
    return MeasuredScenario(report, tuple(subjects), folder, recorded)


def tonight_of(measured: MeasuredScenario) -> list[tuple[NightSubject, Tonight]]:
    """Each subject of a run as a series tonight, its past not yet known."""
    report = measured.report
    verdicts = {one.measurement.subject: one for one in report.verdicts}
    reference = report.scenario.judging.reference
    found = []
    for one in measured.subjects:
        verdict = verdicts.get(one.subject)
        if verdict is None:
            continue  # an interrupt came before its turn
        is_reference = one.subject == reference
        against = None if is_reference else _reference(report, verdicts.get(reference))
        found.append((one, _tonight(measured, one, verdict, against)))
    return found


def _reference(report: RunReport, verdict: SubjectVerdict | None) -> Measurement | None:
    return None if verdict is None else verdict.measurement


def _tonight(
    measured: MeasuredScenario,
    one: NightSubject,
    verdict: SubjectVerdict,
    reference: Measurement | None,
) -> Tonight:
    report = measured.report
    key = run_key(report.scenario, report.questions, DEVICE)
    comparable = (b for b in load_baselines(report.scenario.name) if b.key == key)
    return Tonight(
        key=SeriesKey(report.scenario.name, workload_digest(report), one.role),
        subject=one.subject,
        scenario=report.scenario,
        verdict=verdict,
        reference=reference,
        baseline=next(comparable, None),
        revision=revision(verdict.measurement),
        run=measured.run,
        folder=measured.folder,
    )


def workload_digest(report: RunReport) -> str:
    """What makes two nights comparable: everything but subjects, judging and words."""
    scenario = report.scenario
    parts = (
        run_key(scenario, report.questions, DEVICE),
        scenario.engine,
        scenario.memory,
        scenario.workload,
        scenario.pools,
        scenario.symptom,
    )
    text = msgspec.json.encode(parts, order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def revision(measurement: Measurement) -> str | None:
    """What names the code of a subject: a commit, a release, or a shipped state of the pools."""
    known = measurement.provenance
    for kind in ("commit", "release", "pools"):
        if known.get(kind):
            return f"{kind}:{known[kind]}"
    return None
