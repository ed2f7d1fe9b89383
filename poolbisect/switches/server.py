"""The oracle on a real server: one subject, launched with the flags and environment of switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from poolbisect.errors import UsageError
from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended, Measurement, Outcome
from poolbisect.probes.server.flags import flags_of
from poolbisect.probes.server.measure import measure_server
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.workload import model_for, questions_for
from poolbisect.scenario import Scenario, Server, Symptom
from poolbisect.switches.flags import is_variable, variables_for, with_flags
from poolbisect.switches.launch import Launch, LaunchRequest, Traits, Watch
from poolbisect.switches.switch import Setting, Switch, states

CONCURRENCY = "concurrency"
"""The client's: how many requests it keeps in flight; every other key is the server's."""
_CHARACTERS = {Outcome.RIGHT: "1", Outcome.UNANSWERED: "-"}


class ServerOracle:
    """Launches `subject` (installed, release:… or commit:…) anew for every configuration.

    `concurrency` is the most requests in flight. Logs are below `folder`. UsageError for a symptom
    that needs more than the score of one launch, without a model or questions, or for a switch
    that a server does not have.
    """

    def __init__(
        self,
        scenario: Scenario,
        subject: str,
        switches: tuple[Switch, ...],
        options: ServerOptions,
        *,
        folder: Path,
        questions: int | None,
        repo: Path | None = None,
    ) -> None:
        if scenario.symptom not in (Symptom.ACCURACY, Symptom.CRASH):
            raise UsageError(
                f"--config on a server looks for accuracy or crash, not {scenario.symptom}; "
                "say so with --symptom"
            )
        model_for(scenario, options)
        for switch in switches:
            for setting in switch.settings:
                _check(setting)
        self._scenario = scenario
        self._subject = subject
        self._switches = switches
        self._options = options
        self._folder = folder
        self._questions = questions
        self._repo = repo
        asked = len(questions_for(scenario, options, questions))
        most = min(scenario.engine.max_running_requests, asked)
        self.traits = Traits("server", concurrency=most)

    def launch(self, request: LaunchRequest, watch: Watch) -> Launch:
        settings = states(self._switches, request.on)
        concurrency = settings.pop(CONCURRENCY, None)
        options = self._options
        if request.concurrency is not None:
            options = replace(options, concurrency=request.concurrency)
        elif concurrency is not None:
            options = replace(options, concurrency=int(concurrency))
        folder = self._new_folder()
        measurement = measure_server(
            _configured(self._scenario, settings), self._subject, options,
            folder=folder, questions=self._questions, repository=self._repo, watch=watch,
        )  # fmt: skip
        if measurement.ended is Ended.PARTIAL:
            raise KeyboardInterrupt
        log = str(folder.relative_to(self._folder) / "server.log")
        return _launch(request, measurement, self._scenario.symptom, log)

    def close(self) -> None:
        """Every server ends with its launch."""

    def _new_folder(self) -> Path:
        number = 1
        while (folder := self._folder / "launches" / str(number)).exists():
            number += 1
        folder.mkdir(parents=True)
        return folder


def _check(setting: Setting) -> None:
    if setting.key == CONCURRENCY:
        for value in (setting.off, setting.on):
            if not value.isdigit() or int(value) < 1:
                raise UsageError(f"switch {CONCURRENCY}: it does not take {value!r}")
    elif "." in setting.key:
        raise UsageError(
            f"switch {setting.key}: a server's switches are its flags, environment variables in "
            f"CAPITALS, and {CONCURRENCY}"
        )


def _configured(scenario: Scenario, settings: Mapping[str, str]) -> Scenario:
    """`scenario` whose server has these flags and variables."""
    before = scenario.server
    environment = dict(before.environment) if before is not None else {}
    for name, value in variables_for(settings).items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    flags = with_flags(
        flags_of(scenario), {k: v for k, v in settings.items() if not is_variable(k)}
    )
    gate = before.gate if before is not None else None
    server = Server(flags=flags, environment=environment, gate=gate)
    return msgspec.structs.replace(scenario, server=server)


def _launch(request: LaunchRequest, measurement: Measurement, symptom: Symptom, log: str) -> Launch:
    whole = measurement.ended is Ended.MEASURED
    verdict = None
    if symptom is Symptom.CRASH and measurement.ended in (Ended.MEASURED, Ended.CRASHED):
        verdict = Verdict.GOOD if whole else Verdict.BAD
    outcomes = "".join(_CHARACTERS.get(one.outcome, "0") for one in measurement.answers)
    return Launch(
        request=request,
        ended=measurement.ended,
        detail=measurement.detail,
        correct=measurement.correct if whole else 0,
        asked=measurement.answered if whole else 0,
        outcomes=outcomes if whole else None,
        verdict=verdict,
        accept_length=measurement.accept_length,
        seconds=round(measurement.seconds, 3),
        log=log,
    )
