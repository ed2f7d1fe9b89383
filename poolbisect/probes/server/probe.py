"""The server probe of a bisect: launch a commit's or a release's server, ask it, judge."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Ending, ProbeRequest
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.culprit.interface import Attempt, Probed, Watch
from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.release_ranges import ReleaseRange
from poolbisect.probes.server import client
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.environment import NotBuiltError
from poolbisect.probes.server.flags import flags_of
from poolbisect.probes.server.installing import Installation, Installer
from poolbisect.probes.server.judging import of_a_pass, of_an_evaluation, without_result
from poolbisect.probes.server.options import ServerOptions, restored
from poolbisect.probes.server.own_evaluation import Evaluated, evaluate
from poolbisect.probes.server.passes import ask_all, write_answers
from poolbisect.probes.server.serving import NotServingError, Serving, launch
from poolbisect.probes.server.workload import how_to_ask, model_for, questions_for
from poolbisect.scenario import Scenario

LOG, ANSWERS = "server.log", "answers.jsonl"
_FIRST_QUESTIONS = 250
_BATCH = 50


class ServerProbe:
    """A `HistoryProbe` that serves each position for real; docs/server-probe.md explains it.

    A server stays up while the same position is asked again, with its cache flushed in between,
    and is ended before another one is launched. Its log is kept in `scratch` while it runs.
    """

    name = "server"

    def __init__(
        self,
        history: HistoryRange,
        options: ServerOptions,
        scratch: Path,
        scenario: Scenario | None = None,
    ) -> None:
        """Raises UsageError where the model, the questions or the history cannot be used."""
        if not isinstance(history, CommitRange | ReleaseRange):
            raise UsageError(f"the server probe cannot serve a {history.kind}")
        if options.symptom == "accept-length" and options.rule is None:
            raise UsageError("accept length needs the lowest good one: give --rule")
        self._history = history
        self._options = options
        self._scenario = scenario
        self._scratch = scratch / "server"
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._model = model_for(scenario, options)
        self._questions = questions_for(scenario, options)
        self._flags = (*(flags_of(scenario) if scenario else ()), *options.flags)
        self._installer = Installer(options, self._scratch)
        self._serving: Serving | None = None
        self._position: int | None = None

    def plan(self) -> Plan:
        """Questions are compared one by one; an evaluation of the user's by its counts, or against
        the rule. The default costs hold: bringing a server up is worth thousands of questions."""
        options, whole = self._options, len(self._questions)
        if options.symptom == "crash":
            return Plan(mode=Mode.VERDICTS, crash_is_bad=True)
        if options.symptom == "accept-length" or (options.eval_command and options.rule):
            return Plan(mode=Mode.VERDICTS)
        if options.eval_command:
            asked = options.asked or whole
            # The same questions each time: repeating them shows only what varies between runs.
            return Plan(
                mode=Mode.COUNTS,
                costs=CostModel(switch=asked / 10, question=1.0),
                noise=Noise(commit=1 / asked),
                batch=asked,
                end_questions=asked,
            )
        return Plan(
            mode=Mode.PAIRED,
            rule=options.rule,
            batch=min(_BATCH, whole),
            end_questions=min(_FIRST_QUESTIONS, whole),
            max_end_questions=whole,
        )

    def probe(self, request: ProbeRequest, attempt: Attempt, watch: Watch) -> Probed:
        """Serve the position and ask. As `HistoryProbe.probe`."""
        since = 0
        try:
            if self._serves(request.position) and self._serving is not None:
                since = self._serving.log.size
            else:
                self._launch(request.position, watch)
            assert self._serving is not None
            if self._options.eval_command:
                found = evaluate(self._serving, self._options, attempt.folder)
                probed = self._evaluated(found, self._serving)
            else:
                probed = self._ask(request, attempt, self._serving, watch)
        except NotBuiltError as error:
            probed = self._failed(error.finding)
            if error.log is not None and error.log.is_file():
                (attempt.folder / LOG).write_bytes(error.log.read_bytes())
        except NotServingError as error:
            probed = self._failed(error.finding)
        except InfrastructureError as error:
            probed = self._failed(Finding(ServerEnd.HOST, str(error).rstrip(".")))
        except BaseException:
            self._end()
            raise
        finally:
            self._keep_log(since, attempt)
        if probed.observation.ending is not Ending.MEASURED:
            traces = self._end()
            probed = Probed(probed.observation, {**probed.evidence, **traces})
        return probed

    def close(self) -> None:
        """End the server and remove the work tree."""
        self._end()
        self._installer.close()
        with contextlib.suppress(OSError):
            self._scratch.rmdir()

    def _serves(self, position: int) -> bool:
        return self._serving is not None and self._position == position and self._serving.alive()

    def _launch(self, position: int, watch: Watch) -> None:
        self._end()
        installation = self._install(position, watch)
        self._serving = launch(
            installation,
            self._options,
            self._flags,
            self._model,
            self._scratch,
            watch,
            self._scenario,
        )
        self._position = position

    def _install(self, position: int, watch: Watch) -> Installation:
        if isinstance(self._history, CommitRange):
            commit = self._history.commits[position]
            return self._installer.commit(self._history.repository, commit, watch)
        assert isinstance(self._history, ReleaseRange)
        return self._installer.release(self._history.versions[position], watch)

    def _ask(
        self, request: ProbeRequest, attempt: Attempt, serving: Serving, watch: Watch
    ) -> Probed:
        offset, count = self._part(request)
        asked = self._questions.part(offset, count)
        provenance = serving.provenance()
        one = ask_all(serving, asked, how_to_ask(self._scenario, self._options), watch)
        write_answers(one.answers, attempt.folder / ANSWERS)
        if one.finding.end is ServerEnd.INTERRUPTED:
            raise KeyboardInterrupt
        evidence = self._evidence(one.finding, serving, provenance)
        evidence["notes"] = list(one.notes)
        evidence["answers"] = ANSWERS
        if one.accept_length is not None:
            evidence["accept_length"] = one.accept_length
        observation = of_a_pass(one, offset, self._options)
        if not evidence["detail"]:
            evidence["detail"] = observation.note
        return Probed(observation, evidence)

    def _part(self, request: ProbeRequest) -> tuple[int, int]:
        """Offset and number of the questions, within those there are."""
        if self._options.symptom != "accuracy":
            return 0, len(self._questions)
        offset = min(request.offset, len(self._questions) - 1)
        return offset, max(1, request.questions)

    def _evaluated(self, found: Evaluated, serving: Serving) -> Probed:
        provenance = {**serving.provenance(), "evaluation": list(found.argv)}
        evidence = self._evidence(found.finding, serving, provenance)
        reading = found.reading
        if reading is None:
            return Probed(without_result(found.finding), evidence)
        length = reading.accept_length
        if length is None:
            length = client.accept_length(client.server_facts(serving.address))
        if length is not None:
            evidence["accept_length"] = length
        evidence["score"] = reading.score
        seen = of_an_evaluation(reading, length, len(self._questions), self._options)
        return Probed(seen, evidence)

    def _failed(self, finding: Finding) -> Probed:
        evidence = {"detail": finding.detail, "class": finding.end.value, "log": LOG}
        return Probed(without_result(finding), evidence)

    def _evidence(
        self, finding: Finding, serving: Serving, provenance: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "detail": finding.detail,
            "class": finding.end.value,
            "log": LOG,
            "provenance": dict(provenance),
        }

    def _keep_log(self, since: int, attempt: Attempt) -> None:
        if self._serving is not None:
            self._serving.log.copy(since, attempt.folder / LOG)
            return
        log = self._scratch / LOG
        if log.is_file():
            (attempt.folder / LOG).write_bytes(log.read_bytes())
            log.unlink()

    def _end(self) -> dict[str, Any]:
        """End the server; what it left, for the report."""
        serving, self._serving, self._position = self._serving, None, None
        if serving is None:
            return {}
        traces = serving.end()
        serving.log.path.unlink(missing_ok=True)
        found: dict[str, Any] = {}
        if traces.left:
            found["left_running"] = list(traces.left)
        if traces.trouble:
            found["not_freed"] = traces.trouble
        return found


def open_server_probe(
    kept: Mapping[str, Any], history: HistoryRange, scratch: Path, scenario: Scenario | None
) -> ServerProbe:
    """The probe of a session that keeps `options.stored(...)`. As `ServerProbe` for the rest."""
    return ServerProbe(history, restored(kept), scratch, scenario)
