"""One subject measured on a real server, as `poolbisect run --probe server` does."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.evidence.paired import compare_paired
from poolbisect.history.repository import open_repository
from poolbisect.measurement import Answer, Measurement, MemoryEvents, Outcome
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.environment import NotBuiltError
from poolbisect.probes.server.flags import flags_of, shown
from poolbisect.probes.server.installing import Installation, Installer
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.passes import Pass, ask_all
from poolbisect.probes.server.serving import NotServingError, Traces, launch
from poolbisect.probes.server.workload import how_to_ask, model_for, questions_for
from poolbisect.scenario import Scenario

DRIFT = 0.001
"""Two rounds on one server that differ with a smaller p than this are no repetition."""

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ServerRun:
    """A launch with its passes. `finding` is the first that was not measured, if there is one."""

    finding: Finding
    passes: tuple[Pass, ...]
    provenance: dict[str, Any]
    traces: Traces
    seconds: float


def measure_server(
    scenario: Scenario,
    subject: str,
    options: ServerOptions,
    *,
    folder: Path,
    questions: int | None = None,
    repository: Path | None = None,
    watch: Watch = lambda words: None,
) -> Measurement:
    """Launch `subject`, ask everything, end it. Logs and environments' work trees are in `folder`.

    `subject` is `installed`, `release:<version>` or `commit:<revision>` of the repository at or
    around `repository`. Whatever goes wrong with it, an interrupt included, is how the
    measurement ended.

    Raises:
        UsageError: the options, the subject or the questions are wrong.
        InfrastructureError: the host's folders cannot be used.
    """
    asked = questions_for(scenario, options, questions)
    model = model_for(scenario, options)
    clock = time.monotonic()
    with closing(Installer(options, folder)) as installer:
        try:
            installation = _installed(installer, subject, repository, watch)
        except NotBuiltError as error:
            if error.log is not None and error.log.is_file():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "install.log").write_bytes(error.log.read_bytes())
            return _without_answers(subject, error.finding, len(asked), time.monotonic() - clock)
        except KeyboardInterrupt:
            finding = Finding(ServerEnd.INTERRUPTED, "interrupted before the server was launched")
            return _without_answers(subject, finding, len(asked), time.monotonic() - clock)
        run = run_server(installation, scenario, options, model, folder, watch, questions)
    return _measurement(subject, run, len(asked))


def run_server(
    installation: Installation,
    scenario: Scenario,
    options: ServerOptions,
    model: str,
    folder: Path,
    watch: Watch,
    questions: int | None = None,
) -> ServerRun:
    """Launch what is installed, ask every question `options.rounds` times, end it."""
    asked = questions_for(scenario, options, questions)
    how = how_to_ask(scenario, options)
    flags = (*flags_of(scenario), *options.flags)
    folder.mkdir(parents=True, exist_ok=True)
    clock = time.monotonic()
    provenance: dict[str, Any] = {**installation.facts, "flags": shown(flags)}
    passes: list[Pass] = []
    try:
        serving = launch(installation, options, flags, model, folder, watch, scenario)
    except NotServingError as error:
        return ServerRun(error.finding, (), provenance, Traces(), time.monotonic() - clock)
    except KeyboardInterrupt:
        finding = Finding(ServerEnd.INTERRUPTED, "interrupted while the server started")
        return ServerRun(finding, (), provenance, Traces(), time.monotonic() - clock)
    with serving:
        provenance |= serving.provenance()
        for number in range(options.rounds):
            if options.rounds > 1:
                watch(f"round {number + 1} of {options.rounds}")
            passes.append(ask_all(serving, asked, how, watch))
            if passes[-1].finding.end is not ServerEnd.MEASURED:
                break
        traces = serving.end()
    return ServerRun(
        passes[-1].finding, tuple(passes), provenance, traces, time.monotonic() - clock
    )


def drift_words(passes: tuple[Pass, ...]) -> str | None:
    """What the last round says against the first, if that is more than chance."""
    if len(passes) < 2:
        return None
    first, last = passes[0], passes[-1]
    compared = compare_paired(_right(first.answers), _right(last.answers))
    if compared.p_value >= DRIFT:
        return None
    return (
        f"the score drifts while the server runs: {_score(first)} in round 1, "
        f"{_score(last)} in round {len(passes)} (p = {compared.p_value:.2g})"
    )


def doubt_of(measurement: Measurement) -> str:
    """Why a measured score is not to be trusted: NaN in the server's log, or a drift; empty if
    nothing speaks against it."""
    return "; ".join(measurement.provenance.get("doubts", ()))


def _measurement(subject: str, run: ServerRun, asked: int) -> Measurement:
    first = run.passes[0] if run.passes else None
    chosen = run.passes[-1] if run.passes and run.finding.end is not ServerEnd.MEASURED else first
    details = [run.finding.detail] if run.finding.detail else []
    for one in run.passes:
        details += [note for note in one.notes if note not in details]
    drift = drift_words(run.passes)
    if drift:
        details.append(drift)
    if run.traces.left:
        details.append(f"it left processes running: {', '.join(run.traces.left)}")
    if run.traces.trouble:
        details.append(run.traces.trouble)
    provenance = dict(run.provenance)
    provenance["ending"] = run.finding.end.value
    doubts = [note for one in run.passes for note in one.doubts]
    if doubts or drift:
        provenance["doubts"] = list(dict.fromkeys([*doubts, *([drift] if drift else [])]))
    if len(run.passes) > 1:
        provenance["rounds"] = [_round_facts(one) for one in run.passes]
    return Measurement(
        subject=subject,
        ended=run.finding.ended,
        detail="; ".join(details),
        asked=asked,
        answers=chosen.answers if chosen is not None else (),
        accept_length=chosen.accept_length if chosen is not None else None,
        slots=None,
        memory=MemoryEvents(watched=False),
        seconds=chosen.seconds if chosen is not None else run.seconds,
        tokens=chosen.tokens if chosen is not None else 0,
        provenance=provenance,
    )


def _without_answers(subject: str, finding: Finding, asked: int, seconds: float) -> Measurement:
    run = ServerRun(finding, (), {}, Traces(), seconds)
    return _measurement(subject, run, asked)


def _installed(
    installer: Installer, subject: str, repository: Path | None, watch: Watch
) -> Installation:
    kind, _, reference = subject.partition(":")
    if subject == "installed":
        return installer.installed(watch)
    if kind == "release" and reference:
        return installer.release(reference, watch)
    if kind == "commit" and reference:
        with open_repository(repository or Path()) as opened:
            return installer.commit(opened, opened.commit(reference), watch)
    raise UsageError(
        f"{subject!r} is nothing to launch; say installed, release:<version> such as "
        "release:0.5.12, or commit:<revision>"
    )


def _round_facts(one: Pass) -> dict[str, Any]:
    tally = one.tally
    return {
        "correct": tally.right,
        "answered": tally.answered,
        "accept_length": one.accept_length,
        "seconds": round(one.seconds, 3),
        "flushed": one.flushed,
    }


def _score(one: Pass) -> str:
    accuracy = one.tally.accuracy
    return "no score" if accuracy is None else f"{accuracy:.3f}"


def _right(answers: tuple[Answer, ...]) -> dict[int, bool]:
    return {
        answer.id: answer.outcome is Outcome.RIGHT
        for answer in answers
        if answer.outcome is not Outcome.UNANSWERED
    }
