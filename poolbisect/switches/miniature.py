"""The oracle on the miniature: one subject of a scenario, served with some switches on."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

from poolbisect.baselines import BaselineComparison
from poolbisect.errors import NotApplicableError, UsageError
from poolbisect.evidence.verdict import Verdict
from poolbisect.history.source_tree import SourceTree
from poolbisect.judging import judge_subject
from poolbisect.measurement import Ended, Measurement, MemoryEvents, Outcome
from poolbisect.models.loading import load_model
from poolbisect.probes.inspection import inspect_pools
from poolbisect.probes.miniature import Settings, Tick, measure
from poolbisect.probes.served_apart import ApartServer
from poolbisect.probes.subjects import resolve
from poolbisect.scenario import Scenario, Symptom
from poolbisect.subject import parse_subject
from poolbisect.switches.configured import configured
from poolbisect.switches.launch import Launch, LaunchRequest, Role, Traits, Watch
from poolbisect.switches.switch import Switch, states
from poolbisect.tasks.problem_set import load_problems

_CHARACTERS = {Outcome.RIGHT: "1", Outcome.UNANSWERED: "-"}


class MiniatureOracle:
    """Serves the first `questions` problems on `subject` in any configuration of its scenario.

    UsageError if a switch does not fit the scenario or the subject does not exist;
    NotApplicableError for a symptom that needs a reference, on the reference itself.
    """

    def __init__(
        self,
        scenario: Scenario,
        subject: str,
        switches: Sequence[Switch],
        *,
        questions: int,
        settings: Settings,
        repo: Path | None = None,
    ) -> None:
        self._scenario = scenario
        self._switches = tuple(switches)
        self._settings = settings
        for active in ((), [switch.name for switch in switches]):
            configured(scenario, states(switches, active))
        reference = scenario.judging.reference
        lengths = scenario.symptom is Symptom.ACCEPT_LENGTH
        if lengths and subject == reference:
            raise NotApplicableError(
                f"accept length is judged against {reference} with the same switches; "
                "give another --subject"
            )
        self._names = {Role.SUBJECT: subject, Role.REFERENCE: reference}
        self._code = {
            role: resolve(parse_subject(name), repo, scenario.pools).code
            for role, name in self._names.items()
        }
        self._apart = ApartServer()
        self._problems = load_problems(scenario.workload.task, questions)
        self._model = load_model(scenario.workload.model)
        self.traits = Traits(
            "miniature",
            reference=None if lengths or subject == reference else reference,
            concurrency=min(scenario.engine.max_running_requests, questions),
        )

    def launch(self, request: LaunchRequest, watch: Watch) -> Launch:
        settings = states(self._switches, request.on)
        if request.concurrency is not None:
            settings.pop("workload.concurrency", None)
            settings["concurrency"] = str(request.concurrency)
        scenario = configured(self._scenario, settings)
        try:
            measurement = self._measure(request.role, scenario, watch)
            verdict, detail = self._own_verdict(request.role, measurement, scenario, watch)
        except UsageError as error:
            return Launch(request=request, ended=Ended.NOT_APPLICABLE, detail=f"refused: {error}")
        return _launch(request, measurement, verdict, detail)

    def close(self) -> None:
        self._apart.close()

    def _measure(self, role: Role, scenario: Scenario, watch: Watch) -> Measurement:
        """Serve in one configuration. UsageError if the engine refuses it."""
        name, code, asked = self._names[role], self._code[role], len(self._problems)

        def on_tick(tick: Tick) -> None:
            score = f", accuracy {tick.right / tick.done:.3f}" if tick.done else ""
            watch(f"{tick.done} of {asked} questions{score}")

        if isinstance(code, SourceTree):
            seen = self._apart.inspect(code, scenario)
        else:
            seen = inspect_pools(lambda: code, scenario)
        if seen.ended is not Ended.MEASURED:
            nothing = MemoryEvents(watched=False)
            return Measurement(name, seen.ended, seen.detail, asked, (), None, None, nothing, 0, 0)
        if isinstance(code, SourceTree):
            measurement = self._apart.measure(
                name, code, scenario, 0, asked, self._settings, on_tick
            )
        else:
            measurement = measure(
                name, code, scenario, self._problems, self._model, self._settings, on_tick
            )
            gc.collect()  # an engine's buffers know their arena; the next launch needs the memory
        if measurement.ended is Ended.PARTIAL:
            raise KeyboardInterrupt
        return measurement

    def _own_verdict(
        self, role: Role, measurement: Measurement, scenario: Scenario, watch: Watch
    ) -> tuple[Verdict | None, str]:
        """A verdict where a score is not what counts, else None; and what there is to say."""
        ending = measurement.ended
        if scenario.symptom is Symptom.ACCURACY or ending in (Ended.INFRA, Ended.BUILD_FAILED):
            return None, measurement.detail
        reference = measurement
        if scenario.symptom is Symptom.ACCEPT_LENGTH and ending is Ended.MEASURED:
            if role is Role.REFERENCE:
                return Verdict.GOOD, "what accept lengths are compared with"
            reference = self._measure(Role.REFERENCE, scenario, watch)
        judged = judge_subject(measurement, reference, scenario, None, BaselineComparison(""))
        return judged.verdict, judged.reason


def _launch(
    request: LaunchRequest, measurement: Measurement, verdict: Verdict | None, detail: str
) -> Launch:
    slots, memory = measurement.slots, measurement.memory
    whole = measurement.ended is Ended.MEASURED
    outcomes = "".join(_CHARACTERS.get(one.outcome, "0") for one in measurement.answers)
    return Launch(
        request=request,
        ended=measurement.ended,
        detail=detail,
        correct=measurement.correct if whole else 0,
        asked=measurement.answered if whole else 0,
        outcomes=outcomes if whole else None,
        verdict=verdict,
        accept_length=measurement.accept_length,
        reads=memory.reads if memory.watched else None,
        writes=memory.writes if memory.watched else None,
        overwritten=len(memory.victims) if memory.watched else None,
        last_slot=slots.last_slot if slots else None,
        last_slot_used=slots.last_slot_used if slots else None,
        requests_on_last_slot=slots.requests_on_last_slot if slots else None,
        seconds=round(measurement.seconds, 3),
    )
