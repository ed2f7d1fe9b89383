"""The workflow of `poolbisect run`: resolve the subjects, measure, judge, save. In that order."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from poolbisect.baselines import BaselineComparison, compare_with_baseline, load_baselines, run_key
from poolbisect.errors import NotApplicableError
from poolbisect.judging import RunVerdict, SubjectVerdict, judge_run, judge_subject
from poolbisect.measurement import Ended, Measurement, MemoryEvents
from poolbisect.models.loading import LoadedModel, load_model
from poolbisect.pools.coverage import last_slot_use
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.upstream.faults import StubGap, SubjectFault
from poolbisect.probes.contract import BufferContract, contracts
from poolbisect.probes.miniature import Settings, Tick, engine_config, measure
from poolbisect.probes.subjects import ResolvedSubject, resolve
from poolbisect.scenario import Scenario
from poolbisect.subject import Subject, parse_subject
from poolbisect.tasks.arithmetic import Problem
from poolbisect.tasks.problem_set import load_problems


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user asked for; `subjects` empty means those of the scenario."""

    scenario: Scenario
    subjects: tuple[str, ...] = ()
    questions: int | None = None
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A subject ready to be measured, or the reason why it cannot be."""

    subject: Subject
    resolved: ResolvedSubject | None
    contracts: tuple[BufferContract, ...] = ()
    questions_to_last_slot: int | None = None
    ended: Ended = Ended.MEASURED
    detail: str = ""


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
    scenario = request.scenario
    questions = request.questions or scenario.workload.questions
    problems = load_problems(scenario.workload.task, questions)
    model = load_model(scenario.workload.model)
    prepared = [_prepare(subject, request) for subject in _subjects(request)]
    if all(one.resolved is None for one in prepared[1:]) and len(prepared) > 1:
        prepared = prepared[1:]
    baseline = load_baselines(scenario.name)
    key = run_key(scenario, questions, request.settings.device)
    verdicts: list[SubjectVerdict] = []
    reference: Measurement | None = None
    for one in prepared:
        measurement = _measure(one, request, questions, problems, model, watch)
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
                one.questions_to_last_slot,
                compared,
            )
        )
        if measurement.ended is Ended.PARTIAL:
            break
    return RunReport(
        scenario=scenario,
        verdicts=tuple(verdicts),
        contracts={one.subject.name: one.contracts for one in prepared},
        verdict=judge_run(verdicts),
        started=started,
        seconds=time.perf_counter() - clock,
        questions=questions,
    )


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
    prepared = [_prepare(subject, request) for subject in _subjects(request)]
    return tuple(
        ContractFinding(one.subject.name, one.contracts, one.ended, one.detail) for one in prepared
    )


def _subjects(request: RunRequest) -> list[Subject]:
    """The subjects to measure, the reference first and each once."""
    scenario = request.scenario
    names = request.subjects or tuple(subject.name for subject in scenario.subjects)
    return [parse_subject(name) for name in dict.fromkeys((scenario.judging.reference, *names))]


def _prepare(subject: Subject, request: RunRequest) -> Prepared:
    config = engine_config(
        request.scenario.engine, request.scenario.memory, request.scenario.workload
    )
    slots, pre_alloc = config.slots_per_rank, config.pre_alloc_size
    mamba = None
    if config.max_mamba_cache_size is not None:
        mamba = MambaSizing(
            config.mamba_slots_per_rank,
            config.mamba_extra_buffer,
            not config.disable_overlap_schedule,
        )
    try:
        resolved = resolve(subject, family=request.scenario.pools)
        found = contracts(resolved.pools, request.scenario.buffers, slots, pre_alloc, mamba)
        pool = resolved.pools.make_pool(slots, 8, "cpu", pre_alloc)
    except NotApplicableError as error:
        return Prepared(subject, None, ended=Ended.NOT_APPLICABLE, detail=str(error))
    except StubGap as error:
        return Prepared(subject, None, ended=Ended.BUILD_FAILED, detail=str(error))
    except SubjectFault as error:
        return Prepared(subject, None, ended=Ended.CRASHED, detail=str(error))
    in_flight = slots + (pre_alloc or 0)
    if mamba is not None:
        in_flight = min(in_flight, mamba.size // mamba.slots_per_request)
    first = last_slot_use(pool, max(1, in_flight), 4 * in_flight + 4 * slots).first_request
    needed = None if first is None else first * config.dp_size
    return Prepared(subject, resolved, found, needed)


def _measure(
    one: Prepared,
    request: RunRequest,
    questions: int,
    problems: Sequence[Problem],
    model: LoadedModel,
    watch: Watch | None,
) -> Measurement:
    name = one.subject.name
    if one.resolved is None:
        return Measurement(
            name, one.ended, one.detail, questions, (), None, None, MemoryEvents(False), 0.0, 0
        )

    def on_tick(tick: Tick) -> None:
        if watch is not None:
            watch(name, questions, tick)

    measurement = measure(
        name, one.resolved.pools, request.scenario, problems, model, request.settings, on_tick
    )
    gc.collect()  # an engine's buffers know their arena; the next subject needs the memory
    return replace(measurement, provenance={**one.resolved.provenance, **measurement.provenance})
