"""What a run says of its commit, once it is decided what is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poolbisect.bisection.outcome import Ending, Observation, Verdict
from poolbisect.culprit.interface import Probed
from poolbisect.probes.command.attempt import LOG, Ran
from poolbisect.probes.command.decision import Decision, Judge
from poolbisect.probes.command.exit_codes import SKIP, by_exit, in_words, without_score
from poolbisect.probes.command.invocation import shown
from poolbisect.probes.command.question_order import OtherQuestionsError, QuestionOrder

_WITHOUT_RESULT = (Ending.MEASURED, Ending.CRASHED, Ending.UNTESTABLE)


def judge(ran: Ran, decision: Decision, order: QuestionOrder) -> Observation:
    """The run as the search takes it; only what the decision looks at can be bad."""
    if decision.judge in (Judge.EXIT, Judge.CRASH):
        seen = by_exit(ran.finished, crash_is_bad=decision.judge is Judge.CRASH)
        failed = ran.finished.status != 0
        return _infra(ran, seen) if failed and ran.infra else seen
    if ran.lost:
        return _failed(ran, Ending.INFRA, ran.lost)
    if ran.reading is None:
        seen = without_score(ran.finished)
        if ran.infra:
            return _infra(ran, seen)
        return replace(seen, note=f"{seen.note}: {ran.no_score}") if ran.no_score else seen
    return _by_score(ran, decision, order)


def _infra(ran: Ran, seen: Observation) -> Observation:
    if seen.ending not in _WITHOUT_RESULT or ran.finished.status == SKIP:
        return seen
    return _failed(ran, Ending.INFRA, f"{in_words(ran.finished)}, and the log says: {ran.infra}")


def _by_score(ran: Ran, decision: Decision, order: QuestionOrder) -> Observation:
    reading = ran.reading
    assert reading is not None
    seconds = ran.finished.seconds
    also = f", {in_words(ran.finished)}" if ran.finished.status else ""
    if decision.judge is Judge.THRESHOLD:
        assert decision.threshold is not None
        verdict = Verdict.GOOD if reading.score >= decision.threshold else Verdict.BAD
        return Observation.judged(verdict, seconds=seconds, note=f"score {reading.score:.4g}{also}")
    if decision.judge is Judge.COUNTS:
        counts = reading.counts
        if counts is None and decision.asked is not None:
            counts = round(reading.score * decision.asked), decision.asked
        if counts is None:
            return _failed(
                ran,
                Ending.UNTESTABLE,
                f"score {reading.score:.4g} of an unknown number of questions; say it with --asked",
            )
        seen = Observation.counts(*counts, seconds=seconds)
        return replace(seen, note=f"score {reading.score:.4g} of {counts[1]}{also}")
    if not reading.answers:
        return _failed(
            ran, Ending.UNTESTABLE, "a score without each question's answer, unlike other runs"
        )
    try:
        outcomes, first = order.outcomes(reading.answers, ran.place.offset)
    except OtherQuestionsError as error:
        return _failed(ran, Ending.UNTESTABLE, str(error))
    seen = Observation.answers(outcomes, offset=first, seconds=seconds)
    return replace(seen, note=f"score {reading.score:.4g} of {seen.asked}{also}")


def _failed(ran: Ran, ending: Ending, note: str) -> Observation:
    return Observation.failed(ending, seconds=ran.finished.seconds, note=note)


def probed(ran: Ran, decision: Decision, order: QuestionOrder, **more: Any) -> Probed:
    """The observation and what the report shows of the run; `more` joins its provenance."""
    seen = judge(ran, decision, order)
    finished = ran.finished
    provenance: dict[str, Any] = {
        **shown(ran.argv, ran.place.values),
        "status": finished.status,
        "signal": finished.signal,
        "judged_by": decision.why,
        **more,
    }
    detail = f"{seen.note} ({decision.why})"
    evidence: dict[str, Any] = {"detail": detail, "log": LOG, "provenance": provenance}
    if finished.left:
        evidence["left_running"] = list(finished.left)
    if finished.stuck:
        evidence["not_ended"] = list(finished.stuck)
    if ran.reading is not None:
        evidence["score"] = ran.reading.score
        if ran.reading.format:
            provenance["format"] = ran.reading.format
        if ran.reading.accept_length is not None:
            evidence["accept_length"] = ran.reading.accept_length
    return Probed(seen, evidence)
