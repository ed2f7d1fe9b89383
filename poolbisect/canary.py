"""The workflow of `poolbisect run`: resolve the subjects, measure, judge, save. In that order."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from poolbisect.baselines import BaselineComparison, compare_with_baseline, load_baselines, run_key
from poolbisect.history.repository import Repository, open_repository
from poolbisect.history.source_tree import SourceTree
from poolbisect.judging import RunVerdict, SubjectVerdict, judge_run, judge_subject
from poolbisect.measurement import Ended, Measurement, MemoryEvents
from poolbisect.models.loading import LoadedModel, load_model
from poolbisect.probes.contract import BufferContract
from poolbisect.probes.inspection import Inspection, inspect_pools
from poolbisect.probes.miniature import Settings, Tick, measure
from poolbisect.probes.served_apart import ApartServer
from poolbisect.probes.subjects import ResolvedSubject, resolve
from poolbisect.scenario import Scenario
from poolbisect.subject import Subject, parse_subject
from poolbisect.tasks.arithmetic import Problem
from poolbisect.tasks.problem_set import load_problems


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user asked for; `subjects` empty means those of the scenario.

    Commits are read from the repository at or around `repo`, None: the current folder.
    """

    scenario: Scenario
    subjects: tuple[str, ...] = ()
    questions: int | None = None
    settings: Settings = field(default_factory=Settings)
    repo: Path | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A subject with what was seen of its pools: they can be served on, or why not."""

    subject: Subject
    resolved: ResolvedSubject
    inspection: Inspection

    @property
    def can_be_served(self) -> bool:
        return self.inspection.ended is Ended.MEASURED


@dataclass(frozen=True, slots=True)
class RunReport:
    """A finished run. `started` is UTC; the first verdict is the reference's."""

    scenario: Scenario
    verdicts: tuple[SubjectVerdict, ...]
    contracts: dict[str, tuple[BufferContract, ...]]
    verdict: RunVerdict
    started: datetime
    seconds: float
    questions: int

    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code


Watch = Callable[[str, int, Tick], None]


def run(request: RunRequest, watch: Watch | None = None) -> RunReport:
    """Measure the reference first, then each subject against it.

    A subject that cannot be asked is reported as such and does not stop the others; an interrupt
    ends the run after the subject it hit, which is marked partial.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    subjects = _subjects(request)
    with ApartServer() as apart, _repository(request, subjects) as repository:
        if any(subject.kind != "shipped" for subject in subjects):
            apart.start(request.settings.device)  # it gets ready while the rest is loaded
        problems = load_problems(request.scenario.workload.task, _questions(request))
        model = load_model(request.scenario.workload.model)
        prepared = [_prepare(subject, request, apart, repository) for subject in subjects]
        asked_for = request.scenario.judging.reference in request.subjects
        others = prepared[1:]
        if others and not asked_for and not any(one.can_be_served for one in others):
            prepared = others

        def measured(one: Prepared) -> Measurement:
            return _measure(one, request, problems, model, apart, watch)

        verdicts = _judged(prepared, request, measured)
    return RunReport(
        scenario=request.scenario,
        verdicts=tuple(verdicts),
        contracts={one.subject.name: one.inspection.contracts for one in prepared},
        verdict=judge_run(verdicts),
        started=started,
        seconds=time.perf_counter() - clock,
        questions=_questions(request),
    )


def _judged(
    prepared: Sequence[Prepared],
    request: RunRequest,
    measured: Callable[[Prepared], Measurement],
) -> list[SubjectVerdict]:
    scenario = request.scenario
    baseline = load_baselines(scenario.name)
    key = run_key(scenario, _questions(request), request.settings.device)
    verdicts: list[SubjectVerdict] = []
    reference: Measurement | None = None
    for one in prepared:
        measurement = measured(one)
        is_reference = one.subject.name == scenario.judging.reference
        if is_reference:
            reference = measurement
        compared = (
            compare_with_baseline(measurement, key, baseline, scenario.judging.alpha)
            if is_reference
            else BaselineComparison("")
        )
        verdicts.append(
            judge_subject(
                measurement,
                None if is_reference else reference,
                scenario,
                one.inspection.questions_to_last_slot,
                compared,
            )
        )
        if measurement.ended is Ended.PARTIAL:
            break
    return verdicts


@dataclass(frozen=True, slots=True)
class ContractFinding:
    """The contract of one subject's buffers, or why it cannot be asked."""

    subject: str
    contracts: tuple[BufferContract, ...]
    ended: Ended
    detail: str

    @property
    def short(self) -> bool:
        return any(contract.missing for contract in self.contracts)


def probe_contracts(request: RunRequest) -> tuple[ContractFinding, ...]:
    """Which buffers of each subject are short, by how many rows and from which slot on.

    Milliseconds a subject: pools are built, no model is run.
    """
    subjects = _subjects(request)
    with ApartServer() as apart, _repository(request, subjects) as repository:
        prepared = [_prepare(subject, request, apart, repository) for subject in subjects]
    return tuple(
        ContractFinding(
            one.subject.name,
            one.inspection.contracts,
            one.inspection.ended,
            one.inspection.detail,
        )
        for one in prepared
    )


def _questions(request: RunRequest) -> int:
    return request.questions or request.scenario.workload.questions


def _subjects(request: RunRequest) -> list[Subject]:
    """The subjects to measure, the reference first and each once."""
    scenario = request.scenario
    names = request.subjects or tuple(subject.name for subject in scenario.subjects)
    return [parse_subject(name) for name in dict.fromkeys((scenario.judging.reference, *names))]


def _repository(
    request: RunRequest, subjects: Sequence[Subject]
) -> AbstractContextManager[Repository | None]:
    """What commits are read from, if there are any. UsageError as `open_repository`."""
    if any(subject.kind == "commit" for subject in subjects):
        return open_repository(request.repo or Path())
    return nullcontext()


def _prepare(
    subject: Subject, request: RunRequest, apart: ApartServer, repository: Repository | None
) -> Prepared:
    scenario = request.scenario
    resolved = resolve(subject, repository, scenario.pools)
    code = resolved.code
    if isinstance(code, SourceTree):
        return Prepared(subject, resolved, apart.inspect(code, scenario))
    return Prepared(subject, resolved, inspect_pools(lambda: code, scenario))


def _measure(
    one: Prepared,
    request: RunRequest,
    problems: Sequence[Problem],
    model: LoadedModel,
    apart: ApartServer,
    watch: Watch | None,
) -> Measurement:
    name, code, asked = one.subject.name, one.resolved.code, len(problems)
    if not one.can_be_served:
        ended, detail = one.inspection.ended, one.inspection.detail
        nothing = MemoryEvents(watched=False)
        return Measurement(name, ended, detail, asked, (), None, None, nothing, 0.0, 0)

    def on_tick(tick: Tick) -> None:
        if watch is not None:
            watch(name, asked, tick)

    scenario, settings = request.scenario, request.settings
    if isinstance(code, SourceTree):
        measurement = apart.measure(name, code, scenario, 0, asked, settings, on_tick)
    else:
        measurement = measure(name, code, scenario, problems, model, settings, on_tick)
        gc.collect()  # an engine's buffers know their arena; the next subject needs the memory
    return replace(measurement, provenance={**one.resolved.provenance, **measurement.provenance})
