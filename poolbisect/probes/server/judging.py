"""What a pass or an evaluation says of a position, by the symptom that is looked for."""

from __future__ import annotations

from dataclasses import replace

from poolbisect.bisection.outcome import Ending, Observation, Verdict
from poolbisect.probes.command.score_reading import Reading
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.passes import Pass

_NO_CRASH = "did not crash"


def of_a_pass(one: Pass, offset: int, options: ServerOptions) -> Observation:
    """Answers question by question, or a verdict where the symptom is another than accuracy."""
    note = "; ".join(one.notes)
    if one.finding.end is not ServerEnd.MEASURED:
        return without_result(one.finding)
    if options.symptom == "crash":
        return Observation.judged(Verdict.GOOD, note=_joined(_NO_CRASH, note))
    if options.symptom == "accept-length":
        return _by_accept_length(one.accept_length, options, note)
    return replace(Observation.answers(one.outcomes, offset=offset), note=note)


def of_an_evaluation(
    reading: Reading, accept_length: float | None, asked: int, options: ServerOptions
) -> Observation:
    """The score by the rule, or its counts; `asked` questions where neither it nor the user says.

    A score without counts is turned into the whole number of right answers next to it.
    """
    note = f"score {reading.score:.4g}"
    if options.symptom == "crash":
        return Observation.judged(Verdict.GOOD, note=_NO_CRASH)
    if options.symptom == "accept-length":
        return _by_accept_length(accept_length, options, "")
    if options.rule is not None:
        verdict = Verdict.GOOD if reading.score >= options.rule else Verdict.BAD
        return Observation.judged(verdict, note=note)
    whole = options.asked or asked
    counts = reading.counts or (round(reading.score * whole), whole)
    return replace(Observation.counts(*counts), note=note)


def without_result(finding: Finding) -> Observation:
    return Observation.failed(finding.ending, note=finding.detail)


def _by_accept_length(length: float | None, options: ServerOptions, note: str) -> Observation:
    if length is None:
        return Observation.failed(
            Ending.UNTESTABLE, note="the server reports no accept length: does it speculate?"
        )
    verdict = Verdict.GOOD if length >= (options.rule or 0.0) else Verdict.BAD
    return Observation.judged(verdict, note=_joined(f"accept length {length:.3f}", note))


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
