"""The oracle on any command: switches become its flags and its environment."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from poolbisect.bisection.outcome import Ending, Observation
from poolbisect.bisection.outcome import Verdict as SearchVerdict
from poolbisect.errors import UsageError
from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended
from poolbisect.probes.command.attempt import LOG, Ran, run_once
from poolbisect.probes.command.decision import Decision, Judge, save, saved
from poolbisect.probes.command.invocation import Place
from poolbisect.probes.command.judging import judge
from poolbisect.probes.command.options import BadIf, CommandOptions
from poolbisect.probes.command.question_order import QuestionOrder
from poolbisect.switches.flags import flags_for, is_variable, variables_for
from poolbisect.switches.launch import Launch, LaunchRequest, Traits, Watch
from poolbisect.switches.switch import Switch, states

PLACEHOLDER = "{switches}"
_ENDED = {
    Ending.MEASURED: Ended.MEASURED,
    Ending.CRASHED: Ended.CRASHED,
    Ending.BUILD_FAILED: Ended.BUILD_FAILED,
    Ending.TIMED_OUT: Ended.TIMED_OUT,
    Ending.UNTESTABLE: Ended.NOT_APPLICABLE,
    Ending.INFRA: Ended.INFRA,
}
_VERDICT = {SearchVerdict.GOOD: Verdict.GOOD, SearchVerdict.BAD: Verdict.BAD}


class CommandOracle:
    """Runs `argv` in the folder `cwd`, where `{switches}` becomes the flags of the switches.

    How runs are judged follows from the options and the first run, and is kept in `folder` with
    each run's log. UsageError if the command cannot get the switches.
    """

    def __init__(
        self,
        argv: Sequence[str],
        switches: Sequence[Switch],
        options: CommandOptions,
        *,
        folder: Path,
        cwd: Path,
    ) -> None:
        if not argv:
            raise UsageError("--probe command needs a command: … --probe command -- CMD ARGS")
        keys = [setting.key for switch in switches for setting in switch.settings]
        flags = [key for key in keys if not is_variable(key)]
        if flags and PLACEHOLDER not in argv:
            raise UsageError(
                f"the command does not get --{flags[0]}: write {PLACEHOLDER}, a word of its own, "
                "where its flags belong; only names in CAPITALS become environment variables"
            )
        self.traits = Traits("command")
        self._argv = tuple(argv)
        self._switches = tuple(switches)
        self._options = options
        self._folder = folder
        self._cwd = cwd
        self._order = QuestionOrder(folder / "questions.json", is_fixed=True)
        self._decision = saved(folder / "judging.json")

    def launch(self, request: LaunchRequest, watch: Watch) -> Launch:
        attempt = self._new_folder()
        watch("running")
        place = Place(
            commit=None,
            release=None,
            tree=self._cwd,
            attempt=attempt,
            run_id=uuid.uuid4().hex,
            questions=self._options.asked or 0,
            offset=0,
        )
        ran = run_once(self._with(request), self._options, place, look_for_score=self._looks)
        if self._decision is None:
            self._decision = _decide(self._options, ran)
            save(self._decision, self._folder / "judging.json")
        seen = judge(ran, self._decision, self._order)
        log = str((attempt / LOG).relative_to(self._folder))
        return _launch(request, ran, seen, self._decision, log)

    def close(self) -> None:
        """Every run ends with its tree of processes."""

    @property
    def _looks(self) -> bool:
        if self._decision is None:
            return self._options.bad_if not in (BadIf.EXIT, BadIf.CRASH)
        return self._decision.judge not in (Judge.EXIT, Judge.CRASH)

    def _with(self, request: LaunchRequest) -> list[str]:
        settings = states(self._switches, request.on)
        argv: list[str] = []
        for word in self._argv:
            argv += flags_for(settings) if word == PLACEHOLDER else [word]
        variables = variables_for(settings)
        if not variables:
            return argv
        unset = [
            word for name, value in variables.items() if value is None for word in ("-u", name)
        ]
        assigned = [f"{name}={value}" for name, value in variables.items() if value is not None]
        return ["env", *unset, *assigned, *argv]

    def _new_folder(self) -> Path:
        number = 1
        while (folder := self._folder / "launches" / str(number)).exists():
            number += 1
        folder.mkdir(parents=True)
        return folder


def _decide(options: CommandOptions, ran: Ran) -> Decision:
    """How runs are judged, from the first one. UsageError if its score cannot be compared."""
    if options.bad_if is BadIf.CRASH:
        return Decision(judge=Judge.CRASH, why="a crash is bad, whatever else happens is good")
    if options.bad_if is BadIf.EXIT:
        return Decision(judge=Judge.EXIT, why="the exit status judges, as asked for")
    if options.threshold is not None:
        why = f"a score below {options.threshold:g} is bad"
        return Decision(judge=Judge.THRESHOLD, why=why, threshold=options.threshold)
    reading = ran.reading
    if reading is None and not options.wants_score:
        return Decision(judge=Judge.EXIT, why="the first run gave no score")
    if reading is None or reading.answers is not None:
        return Decision(judge=Judge.ANSWERS, why="the same questions are compared one by one")
    if reading.counts is not None or options.asked is not None:
        return Decision(judge=Judge.COUNTS, why="right answers are compared", asked=options.asked)
    raise UsageError(
        f"with every switch off the command scores {reading.score:.4g}, of an unknown number of "
        "questions; say how many with --asked, or with --threshold which score is bad"
    )


def _launch(
    request: LaunchRequest, ran: Ran, seen: Observation, decision: Decision, log: str
) -> Launch:
    verdict = _VERDICT[seen.verdict] if seen.verdict is not None else None
    if seen.ending is Ending.CRASHED and decision.judge is Judge.CRASH:
        verdict = Verdict.BAD
    reading = ran.reading
    return Launch(
        request=request,
        ended=_ENDED[seen.ending],
        detail=seen.note,
        correct=seen.correct,
        asked=seen.asked,
        outcomes=None if seen.outcomes is None else "-" * seen.offset + seen.outcomes,
        verdict=verdict,
        accept_length=reading.accept_length if reading is not None else None,
        seconds=round(seen.seconds, 3),
        log=log,
    )
