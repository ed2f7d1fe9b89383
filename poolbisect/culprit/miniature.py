"""The miniature probe on positions of a history: a small model on that position's pools."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.baselines import BaselineComparison
from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.outcome import Ending, Observation, ProbeRequest, Verdict
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.culprit.contract import probed_tree
from poolbisect.culprit.interface import Attempt, Probed, Watch
from poolbisect.errors import InfrastructureError, NotApplicableError, UsageError
from poolbisect.evidence.verdict import Verdict as Judged
from poolbisect.history.ranges import HistoryRange
from poolbisect.history.source_tree import SourceTree
from poolbisect.judging import judge_subject
from poolbisect.measurement import Answer, Ended, Measurement, Outcome
from poolbisect.models.loading import load_model
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.miniature import Settings, Tick, measure
from poolbisect.probes.served_apart import ApartServer
from poolbisect.scenario import Scenario, Symptom
from poolbisect.tasks.problem_set import load_problems

QUESTIONS = 300
"""Questions of one probe, unless reaching the last request slot takes more."""

_PRICE = CostModel(switch=20, question=1, probe=50)
_ENDINGS = {
    Ended.CRASHED: Ending.CRASHED,
    Ended.STOPPED: Ending.CRASHED,
    Ended.BUILD_FAILED: Ending.BUILD_FAILED,
    Ended.TIMED_OUT: Ending.TIMED_OUT,
    Ended.INFRA: Ending.INFRA,
    Ended.NOT_APPLICABLE: Ending.UNTESTABLE,
}
_OUTCOMES = {Outcome.RIGHT: "1", Outcome.UNANSWERED: "-"}


class MiniatureHistoryProbe:
    """Serves the scenario's problems in a limited child process, on upstream's own classes.

    Where the symptom is accuracy the search gets every answer, and compares them with those of
    the ends; for any other symptom a run is judged as `run` judges it, against the scenario's
    reference.
    """

    name = "miniature"

    def __init__(
        self, history: HistoryRange, scenario: Scenario, options: Mapping[str, Any]
    ) -> None:
        """`options`: `questions` of one probe, `seed` of sampled decoding, `device`; all optional.

        Raises:
            UsageError: more questions than the scenario has.
        """
        self._history = history
        self._scenario = scenario
        self._settings = Settings(device=options.get("device") or "cpu", seed=options.get("seed"))
        self._asked = options.get("questions")
        available = scenario.workload.questions
        if self._asked is not None and self._asked > available:
            raise UsageError(
                f"--questions {self._asked}: {scenario.name} has {available} questions"
            )
        self._server = ApartServer()
        self._server.start(self._settings.device)
        self._batch: int | None = None
        self._to_last_slot: int | None = None
        self._reference: Measurement | None = None

    def plan(self) -> Plan:
        batch = self._questions()
        if self._scenario.symptom is not Symptom.ACCURACY:
            crash = self._scenario.symptom is Symptom.CRASH
            return Plan(mode=Mode.EXACT, costs=_PRICE, crash_is_bad=crash)
        return Plan(
            mode=Mode.PAIRED,
            costs=_PRICE,
            batch=batch,
            end_questions=batch,
            max_end_questions=self._scenario.workload.questions,
        )

    def probe(self, request: ProbeRequest, attempt: Attempt, watch: Watch) -> Probed:
        count = request.questions
        if self._scenario.symptom is not Symptom.ACCURACY:
            count = self._questions()

        def serve(tree: SourceTree) -> Probed:
            return self._serve(tree, request.offset, count, attempt.folder, watch)

        return probed_tree(self._history, request.position, serve)

    def probe_tree(self, tree: SourceTree) -> Probed:
        """Any state of the sources, whether or not it is a position."""
        return self._serve(tree, 0, self._questions(), None, lambda words: None)

    def close(self) -> None:
        self._server.close()

    def _questions(self) -> int:
        """Enough for every rank to use its last request slot, at the end where that is known."""
        if self._batch is None:
            for position in (0, len(self._history) - 1):
                try:
                    tree = self._history.tree(position)
                except (InfrastructureError, NotApplicableError):
                    continue
                found = self._server.inspect(tree, self._scenario).questions_to_last_slot
                if found is not None:
                    self._to_last_slot = found
                    break
            wanted = self._asked or QUESTIONS
            available = self._scenario.workload.questions
            # The first request on the last slot harms others only afterwards.
            self._batch = min(max(wanted, 2 * (self._to_last_slot or 0)), available)
        return self._batch

    def _serve(
        self, tree: SourceTree, first: int, count: int, folder: Path | None, watch: Watch
    ) -> Probed:
        def on_tick(tick: Tick) -> None:
            score = f", accuracy {tick.right / tick.done:.3f}" if tick.done else ""
            watch(f"{tree.name}: {tick.done}/{count}{score}")

        # One more than there are is an error: the last questions of a set may be fewer.
        count = min(count, self._scenario.workload.questions - first)
        measurement = self._server.measure(
            tree.name, tree, self._scenario, first, count, self._settings, on_tick
        )
        if measurement.ended is Ended.PARTIAL:
            raise KeyboardInterrupt
        if folder is not None and measurement.answers:
            lines = msgspec.json.Encoder().encode_lines(map(_line, measurement.answers))
            (folder / "answers.jsonl").write_bytes(lines)
        return Probed(self._observe(measurement, first), _evidence(measurement))

    def _observe(self, measurement: Measurement, first: int) -> Observation:
        seconds = measurement.seconds
        if self._scenario.symptom is not Symptom.ACCURACY:
            return self._judge(measurement)
        if measurement.ended is not Ended.MEASURED:
            ending = _ENDINGS[measurement.ended]
            return Observation.failed(ending, seconds=seconds, note=measurement.detail)
        slots = measurement.slots
        if slots is not None and not slots.last_slot_used:
            note = f"request slot {slots.last_slot}, the last one, was not used on every rank"
            return Observation.failed(Ending.UNTESTABLE, seconds=seconds, note=note)
        outcomes = "".join(_OUTCOMES.get(answer.outcome, "0") for answer in measurement.answers)
        return Observation.answers(outcomes, offset=first, seconds=seconds)

    def _judge(self, measurement: Measurement) -> Observation:
        """As `run` judges a subject."""
        judged = judge_subject(
            measurement,
            self._measure_reference(measurement.asked),
            self._scenario,
            self._to_last_slot,
            BaselineComparison(""),
        )
        seconds, note = measurement.seconds, judged.reason
        match judged.verdict:
            case Judged.GOOD:
                return Observation.judged(Verdict.GOOD, seconds=seconds, note=note)
            case Judged.BAD:
                return Observation.judged(Verdict.BAD, seconds=seconds, note=note)
        ending = _ENDINGS.get(measurement.ended, Ending.UNTESTABLE)
        return Observation.failed(ending, seconds=seconds, note=note)

    def _measure_reference(self, questions: int) -> Measurement:
        if self._reference is None:
            scenario = self._scenario
            name = scenario.judging.reference
            self._reference = measure(
                name,
                ShippedPools(name, scenario.pools),
                scenario,
                load_problems(scenario.workload.task, questions),
                load_model(scenario.workload.model),
                self._settings,
            )
            if self._reference.ended is Ended.PARTIAL:
                raise KeyboardInterrupt
        return self._reference


def _line(answer: Answer) -> dict[str, Any]:
    fields = dataclasses.asdict(answer)
    return {"id": fields.pop("id"), "correct": answer.outcome is Outcome.RIGHT, **fields}


def _evidence(measurement: Measurement) -> dict[str, Any]:
    memory, slots = measurement.memory, measurement.slots
    return {
        "detail": measurement.detail,
        "accept_length": measurement.accept_length,
        "out_of_range": {
            "reads": memory.reads,
            "writes": memory.writes,
            "buffers": [dataclasses.asdict(buffer) for buffer in memory.buffers],
            "first": memory.first,
            "padded_writes": memory.padded_writes,
        },
        "last_slot": slots.last_slot if slots else None,
        "requests_on_last_slot": slots.requests_on_last_slot if slots else None,
        "provenance": measurement.provenance,
    }
