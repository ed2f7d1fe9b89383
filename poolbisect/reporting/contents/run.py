"""The report of a run: verdict, accuracy, memory, slots, questions, trend, how to run it again."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.reporting import numbers
from poolbisect.reporting.contents.accuracy import accuracy_section
from poolbisect.reporting.contents.environment import environment_section
from poolbisect.reporting.contents.memory import memory_section
from poolbisect.reporting.contents.questions import questions_section
from poolbisect.reporting.contents.slots import slots_section
from poolbisect.reporting.contents.trend import Trend, trend_section
from poolbisect.reporting.documents.answers import AnswerLine
from poolbisect.reporting.documents.run import Result, RunDocument
from poolbisect.reporting.model import (
    Case,
    CaseOutcome,
    Fact,
    Prose,
    Report,
    Section,
    Tone,
    Words,
    in_words,
)

VERDICTS = {
    "as_expected": ("as expected", Tone.GOOD),
    "regression": ("regression", Tone.BAD),
    "inconclusive": ("inconclusive", Tone.WARNING),
    "infrastructure": ("infrastructure failure", Tone.WARNING),
    "interrupted": ("interrupted", Tone.WARNING),
}


@dataclass(frozen=True, slots=True)
class RunAnswers:
    """Answers by subject, then by question; `faults` says what could not be read."""

    by_subject: dict[str, dict[int, AnswerLine]]
    faults: tuple[str, ...] = ()


def run_report(document: RunDocument, answers: RunAnswers, trend: Trend) -> Report:
    word, tone = VERDICTS.get(document.verdict, (document.verdict, Tone.WARNING))
    sections = [
        accuracy_section(document),
        memory_section(document),
        slots_section(document, answers.by_subject),
        questions_section(document, answers.by_subject),
        trend_section(trend),
        environment_section(document),
    ]
    if answers.faults:
        faults = tuple(Prose(in_words(f"{fault}."), Tone.WARNING) for fault in answers.faults)
        sections.insert(3, Section("not-shown", "What could not be shown", faults))
    return Report(
        kind="run",
        name=document.scenario,
        verdict=word,
        tone=tone,
        headline=_headline(document),
        summary=_summary(document),
        facts=_facts(document),
        sections=tuple(section for section in sections if section is not None),
        cases=tuple(_case(result) for result in document.results),
        started=document.started,
        seconds=document.seconds,
        exit_code=document.exit_code,
    )


def spoken_of(document: RunDocument) -> Result | None:
    """The subject that the verdict is about: one not as expected, else a bad one, else the last."""
    results = document.results
    for wanted in (
        [one for one in results if one.as_expected is False],
        [one for one in results if one.verdict == "bad"],
        results[-1:],
    ):
        if wanted:
            return wanted[0]
    return None


def _headline(document: RunDocument) -> Words:
    result = spoken_of(document)
    if result is None:
        return ("No subject was measured.",)
    words = f"{result.subject}: {result.reason or result.ended.replace('_', ' ')}".rstrip(".")
    paired = result.comparison
    if paired is not None and _lost_accuracy(result):
        words = (
            f"{result.subject} lost {100 * abs(paired.difference):.1f} points of accuracy "
            f"against {document.reference}"
        )
    short = [one for one in result.contract if one.missing_rows]
    if result.verdict == "bad" and short:
        one = max(short, key=lambda contract: contract.missing_rows)
        words += (
            f": {one.buffer} is {numbers.plural(one.missing_rows, 'row')} short, "
            f"from {one.space} {one.short_from} on"
        )
    return in_words(words + ".")


def _lost_accuracy(result: Result) -> bool:
    """Whether accuracy is what the subject is bad for; it may be a crash or its accept length."""
    paired = result.comparison
    return result.verdict == "bad" and paired is not None and "accuracy fell" in result.reason


def _summary(document: RunDocument) -> tuple[Words, ...]:
    found: list[Words] = []
    for result in document.results:
        if result.attribution:
            found.append(in_words(f"{result.subject}: {result.attribution}"))
        elif result.verdict in ("unknown", "untestable") or result.as_expected is False:
            found.append(in_words(f"{result.subject}: {result.reason.rstrip('.')}."))
        if result.questions_needed is not None:
            needed = numbers.plural(result.questions_needed, "question")
            found.append((f"{result.subject}: {needed} would decide.",))
        if result.workaround and result.verdict == "bad":
            found.append((f"Workaround: {result.workaround}.",))
    reference = document.reference_result()
    if reference is not None and reference.baseline:
        note = reference.baseline
        found.append(in_words(f"{reference.subject}: {note.rstrip('.')}."))
    return tuple(found)


def _facts(document: RunDocument) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    result, reference = spoken_of(document), document.reference_result()
    for one in (result, reference if reference is not result else None):
        if one is not None and one.accuracy is not None:
            note = f"{numbers.interval(one.interval)}; {one.correct:,} / {one.answered:,}"
            tone = Tone.BAD if _lost_accuracy(one) else Tone.PLAIN
            facts.append(Fact(f"{one.subject}: accuracy", f"{one.accuracy:.3f}", note, tone))
        elif one is not None:
            note = f"after {one.answered:,} of {one.asked:,} questions"
            facts.append(Fact(one.subject, one.ended.replace("_", " "), note, Tone.WARNING))
    if result is not None and result.comparison is not None:
        paired = result.comparison
        low, high = (numbers.signed(100 * end, 1) for end in paired.interval)
        facts.append(
            Fact(
                "difference",
                numbers.points(paired.difference),
                f"{low} to {high}; p {numbers.p_value(paired.p_value)}",
            )
        )
        facts.append(Fact("questions", f"{paired.lost:,} lost", f"{paired.gained:,} gained"))
        if not _lost_accuracy(result) and result.accept_length is not None:
            before = None if reference is None else reference.accept_length
            note = f"{document.reference} {numbers.number(before)}"
            facts.append(Fact("accept length", numbers.number(result.accept_length), note))
    if result is not None:
        seen = result.out_of_range
        accesses = f"{seen.reads + seen.writes:,}" if seen.watched else "not watched"
        note = f"{seen.reads:,} reads, {seen.writes:,} writes" if seen.watched else ""
        facts.append(Fact("out-of-range accesses", accesses, note))
    facts.append(Fact("exit code", str(document.exit_code), numbers.seconds(document.seconds)))
    return tuple(facts)


def _case(result: Result) -> Case:
    """Agrees with the run's exit code: it is 0 exactly when every case passed."""
    if result.ended == "infra" or result.verdict not in ("good", "bad"):
        outcome = CaseOutcome.ERROR
    elif result.as_expected is False or (result.expected is None and result.verdict == "bad"):
        outcome = CaseOutcome.FAILED
    else:
        outcome = CaseOutcome.PASSED
    if result.as_expected and result.verdict not in ("good", "bad"):
        outcome = CaseOutcome.PASSED
    return Case(
        name=result.subject,
        outcome=outcome,
        message=f"{result.verdict}: {result.reason}",
        detail="\n".join(filter(None, (result.attribution, result.detail, result.baseline))),
        seconds=result.seconds,
    )
