"""The workflow of `poolbisect run --probe server`: launch, ask, judge. In that order."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from poolbisect.baselines import BaselineComparison, compare_with_baseline, load_baselines
from poolbisect.canary import RunReport, RunRequest
from poolbisect.errors import UsageError
from poolbisect.evidence.gates import Gate, check_gate
from poolbisect.evidence.verdict import Verdict
from poolbisect.judging import SubjectVerdict, judge_run, judge_subject
from poolbisect.measurement import Ended, Measurement
from poolbisect.probes.server.devices import list_devices
from poolbisect.probes.server.measure import doubt_of, measure_server
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.workload import questions_for, server_key
from poolbisect.scenario import Scenario, ServerGate

INSTALLED = "installed"

Watch = Callable[[str, str], None]


def run_on_servers(
    request: RunRequest, options: ServerOptions, folder: Path, watch: Watch | None = None
) -> RunReport:
    """Measure each subject on a server of its own, one after the other; logs go to `folder`.

    The first subject is the reference: it is judged by its recorded baseline and by upstream's
    gate, if the scenario has one, and the others against it, question by question.

    Raises:
        UsageError: options, subjects or questions are wrong; an evaluation command was given.
    """
    if options.eval_command:
        raise UsageError(
            "--eval-command is for bisect: a run compares answers question by question; use --eval"
        )
    started, clock = datetime.now(UTC), time.perf_counter()
    names = tuple(dict.fromkeys(request.subjects or (INSTALLED,)))
    judging = msgspec.structs.replace(request.scenario.judging, reference=names[0])
    scenario = msgspec.structs.replace(request.scenario, judging=judging)
    asked = questions_for(scenario, options, request.questions)
    key = server_key(scenario, asked, options, hardware())
    verdicts: list[SubjectVerdict] = []
    reference: Measurement | None = None
    for name in names:
        place = folder / f"server-{name.replace(':', '-').replace('/', '-')}"
        measurement = measure_server(
            scenario,
            name,
            options,
            folder=place,
            questions=request.questions,
            repository=request.repo,
            watch=lambda words, name=name: watch(name, words) if watch else None,  # type: ignore[misc]
        )
        compared = BaselineComparison("")
        if reference is None and measurement.ended is Ended.MEASURED:
            recorded = load_baselines(scenario.name)
            compared = compare_with_baseline(measurement, key, recorded, scenario.judging.alpha)
        verdict = judge_subject(measurement, reference, scenario, None, compared)
        vouched = reference is not None or compared.baseline is not None or len(names) > 1
        verdicts.append(_doubted(_by_gate(verdict, scenario), scenario, vouched=vouched))
        reference = reference or measurement
        if measurement.ended is Ended.PARTIAL:
            break
    return RunReport(
        scenario=scenario,
        verdicts=tuple(verdicts),
        contracts={},
        verdict=judge_run(verdicts),
        started=started,
        seconds=time.perf_counter() - clock,
        questions=len(asked),
    )


def hardware() -> str:
    """What baselines call this host, as in `8xH200`; `cpu` without GPUs."""
    devices = list_devices()
    if not devices:
        return "cpu"
    return f"{len(devices)}x{devices[0].name.removeprefix('NVIDIA ')}"


def _by_gate(verdict: SubjectVerdict, scenario: Scenario) -> SubjectVerdict:
    """The verdict with upstream's gate applied: a score below it is bad whatever else is said."""
    gate = scenario.server.gate if scenario.server is not None else None
    measurement = verdict.measurement
    accuracy = measurement.accuracy
    if gate is None or accuracy is None or measurement.ended is not Ended.MEASURED:
        return verdict
    failures = _failures(gate, accuracy, measurement.accept_length)
    if failures:
        return replace(verdict, verdict=Verdict.BAD, reason="; ".join(failures))
    words = f"it passes upstream's gate of {gate.score:g}"
    return replace(verdict, reason=f"{verdict.reason}; {words}")


def _doubted(verdict: SubjectVerdict, scenario: Scenario, *, vouched: bool) -> SubjectVerdict:
    """Never good where the run itself raises a doubt, or where nothing vouches for its score."""
    measurement = verdict.measurement
    if verdict.verdict is not Verdict.GOOD or measurement.ended is not Ended.MEASURED:
        return verdict
    doubt = doubt_of(measurement)
    if doubt:
        return replace(verdict, verdict=Verdict.UNKNOWN, reason=doubt)
    has_gate = scenario.server is not None and scenario.server.gate is not None
    if not vouched and not has_gate:
        reason = (
            "nothing to compare its score with: there is no gate and no baseline of this setup; "
            "name a second subject, or compare its answers with `poolbisect compare`"
        )
        return replace(verdict, verdict=Verdict.UNKNOWN, reason=reason)
    return verdict


def _failures(gate: ServerGate, accuracy: float, length: float | None) -> list[str]:
    failures = []
    if not check_gate(accuracy, Gate(gate.score)).passed:
        failures.append(f"accuracy {accuracy:.3f} is below upstream's gate of {gate.score:g}")
    if gate.accept_length is not None and length is not None and length <= gate.accept_length:
        failures.append(
            f"accept length {length:.2f} is not above upstream's gate of {gate.accept_length:g}"
        )
    return failures
