"""The report of a night: what is new, what stays, what is fixed, and every series."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.intervals import common_range, interval_chart
from poolbisect.reporting.contents.accuracy import TONES, verdict_cell
from poolbisect.reporting.contents.environment import plain_environment
from poolbisect.reporting.contents.nights import Night, nights_section
from poolbisect.reporting.documents.nightly import Finding, NightlyDocument, Row
from poolbisect.reporting.documents.run import BaselineScore
from poolbisect.reporting.model import (
    Block,
    Case,
    CaseOutcome,
    Cell,
    Code,
    Column,
    Fact,
    Prose,
    Report,
    Section,
    Table,
    Tone,
    Words,
    in_words,
)

VERDICTS = {
    "no_regression": ("no regression", Tone.GOOD),
    "regression": ("regression", Tone.BAD),
    "inconclusive": ("inconclusive", Tone.WARNING),
    "infrastructure": ("infrastructure failure", Tone.WARNING),
    "interrupted": ("interrupted", Tone.WARNING),
}
_STATES = {"new": Tone.BAD, "persistent": Tone.BAD, "fixed": Tone.GOOD}


def nightly_report(document: NightlyDocument, nights: Sequence[Night]) -> Report:
    """`nights`: this one and those before it, oldest first."""
    word, tone = VERDICTS.get(document.verdict, (document.verdict, Tone.WARNING))
    sections = [
        _findings(document),
        _series(document),
        nights_section(nights),
        _notes("drift", "Drift", document.drift, _no_drift(document)),
        _notes("gates", "Gate health", document.gate_health, _no_gate_at_fault(document)),
        _failures(document),
        plain_environment(document.command, document.environment, document.report),
    ]
    return Report(
        kind="night",
        name="nightly",
        verdict=word,
        tone=tone,
        headline=_headline(document),
        summary=tuple(_words(one) for one in document.findings),
        facts=_facts(document),
        sections=tuple(section for section in sections if section is not None),
        cases=tuple(_cases(document)),
        started=document.started,
        seconds=document.seconds,
        exit_code=document.exit_code,
    )


def _headline(document: NightlyDocument) -> Words:
    by_state = {
        state: [one for one in document.findings if one.state == state]
        for state in ("new", "persistent", "fixed")
    }
    if by_state["new"]:
        one = by_state["new"][0]
        words = f"New: {one.subject} on {one.scenario}"
        if one.drop is not None:
            words += f" fell by {100 * abs(one.drop):.1f} points"
        more = len(by_state["new"]) - 1
        if more:
            words += f", and {more} more"
        if one.culprit is not None:
            return (*in_words(words), "; ", Code(one.culprit.called), " did it.")
        return in_words(words + ".")
    if by_state["persistent"]:
        many = numbers.plural(len(by_state["persistent"]), "regression")
        where = ", ".join(f"{one.subject} on {one.scenario}" for one in by_state["persistent"])
        return in_words(f"Nothing new; {many} still there: {where}.")
    if by_state["fixed"]:
        where = ", ".join(f"{one.subject} on {one.scenario}" for one in by_state["fixed"])
        return in_words(f"Fixed: {where}; nothing else is wrong.")
    if document.exit_code == 0:
        many = numbers.plural(len(document.rows), "series", "series")
        if not any(one.nights for one in document.rows):
            return (f"Nothing is wrong: {many} measured, with no night before to compare with.",)
        return (f"Nothing is wrong: {many} measured, none below its baseline or its past.",)
    if document.failures:
        one_failure = document.failures[0]
        return in_words(f"{one_failure.scenario}: {one_failure.text.rstrip('.')}.")
    words = f"The night is {document.verdict.replace('_', ' ')}"
    undecided = _undecided(document)
    if not undecided:
        return (f"{words}.",)
    others = f"; and {len(undecided) - 1} more" if len(undecided) > 1 else ""
    return in_words(f"{words}: {_why(undecided[0])}{others}.")


def _undecided(document: NightlyDocument) -> tuple[Row, ...]:
    return tuple(one for one in document.rows if one.verdict not in ("good", "bad"))


def _why(one: Row) -> str:
    """An undecided series with its reason."""
    reason = one.reason.rstrip(".")
    return f"{one.subject} on {one.scenario} is {one.verdict}" + (f": {reason}" if reason else "")


def _words(one: Finding) -> Words:
    where = f"{one.state.capitalize()}: {one.subject} on {one.scenario}: "
    words: Words = (*in_words(where), *in_words(one.text))
    if one.culprit is not None:
        words = (*words, " ", Code(one.culprit.called), " ", Code(one.culprit.title))
    return words


def _facts(document: NightlyDocument) -> tuple[Fact, ...]:
    facts = []
    for state, tone in _STATES.items():
        count = sum(one.state == state for one in document.findings)
        facts.append(Fact(state, str(count), tone=tone if count else Tone.PLAIN))
    facts.append(Fact("series", str(len(document.rows))))
    failed = len(document.failures)
    facts.append(Fact("failed", str(failed), tone=Tone.WARNING if failed else Tone.PLAIN))
    facts.append(Fact("exit code", str(document.exit_code), numbers.seconds(document.seconds)))
    return tuple(facts)


def _findings(document: NightlyDocument) -> Section | None:
    if not document.findings:
        return None

    def row(one: Finding) -> tuple[Cell, ...]:
        culprit = one.culprit
        return (
            Cell(one.state, tone=_STATES.get(one.state, Tone.PLAIN)),
            Cell(one.scenario, code=True),
            Cell(one.subject, code=True),
            Cell(numbers.points(None if one.drop is None else -abs(one.drop)), sort=one.drop),
            Cell(numbers.p_value(one.p_value), sort=one.p_value),
            Cell("" if culprit is None else f"{culprit.called} {culprit.title}", code=True),
            Cell(one.text),
        )

    table = Table(
        "New, persistent and fixed regressions",
        (
            Column("state"),
            Column("scenario"),
            Column("subject"),
            Column("drop", numeric=True),
            Column("p", numeric=True),
            Column("culprit"),
            Column("what"),
        ),
        tuple(row(one) for one in document.findings),
    )
    return Section("findings", "Findings", (table,))


def _series(document: NightlyDocument) -> Section | None:
    if not document.rows:
        return None
    scores = [one.accuracy for one in document.rows if one.accuracy is not None]
    ends = [end for one in document.rows if one.interval for end in one.interval]
    limits = common_range([*scores, *ends, *(m for one in document.rows for m in _past(one))])
    table = Table(
        "Tonight against the seven nights before, the best, the baseline and the gate",
        (
            Column("scenario"),
            Column("subject"),
            Column("verdict"),
            Column("tonight (95 % interval)", numeric=True),
            Column(f"{limits[0]:.2f} to {limits[1]:.2f}"),
            Column("nights before: mean ± sd (of)", numeric=True),
            Column("best", numeric=True),
            Column("baseline"),
            Column("gate"),
        ),
        tuple(_row(one, limits) for one in document.rows),
        filtered=len(document.rows) > 8,
    )
    words = (
        "Band: mean of the seven nights before ± 2 standard deviations. Intervals: Wilson, 95 %."
    )
    why = (Prose(in_words(f"{_why(one)}."), Tone.WARNING) for one in _undecided(document))
    return Section("series", "Series", (table, *why, Prose((words,))))


def _past(one: Row) -> tuple[float, ...]:
    if one.mean7 is None:
        return ()
    spread = 2 * (one.sd7 or 0.0)
    return one.mean7 - spread, one.mean7 + spread


def _row(one: Row, limits: tuple[float, float]) -> tuple[Cell, ...]:
    chart, past = None, _past(one)
    if one.accuracy is not None:
        chart = interval_chart(
            one.accuracy,
            one.interval,
            limits,
            css=TONES.get(one.verdict, Tone.PLAIN).value,
            band=(past[0], past[1]) if past else None,
        )
    scored = f"{numbers.accuracy(one.accuracy)} ({numbers.interval(one.interval)})"
    mean = numbers.NONE
    if one.mean7 is not None:
        mean = f"{one.mean7:.3f} ± {numbers.number(one.sd7, 4)} ({one.nights})"
    return (
        Cell(one.scenario, code=True, link=_link(one.report) if one.report else None),
        Cell(one.subject, code=True),
        verdict_cell(one.verdict),
        Cell(scored if one.accuracy is not None else numbers.NONE, sort=one.accuracy),
        Cell(chart=chart) if chart else Cell(),
        Cell(mean, sort=one.mean7),
        Cell(numbers.accuracy(one.best), sort=one.best),
        Cell(_recorded(one.baseline)),
        Cell(_recorded(one.gate)),
    )


def _recorded(value: float | str | BaselineScore | None) -> str:
    match value:
        case None:
            return numbers.NONE
        case str():
            return value
        case BaselineScore():
            return f"{value.mean:.3f} ± {value.spread:.4f} ({value.spread_kind})"
        case _:
            return f"{value:g}"


def _link(folder: str) -> str | None:
    """A relative address below or beside the report; anything else is shown, not linked."""
    if folder.startswith("/") or ":" in folder.split("/", 1)[0] or "\\" in folder:
        return None
    return quote(f"./{folder}/report.html")


def _no_drift(document: NightlyDocument) -> str:
    """What an empty list of drifts means: a series has a trend from its third night on."""
    told = sum(one.trend is not None for one in document.rows)
    if not told:
        return "Too few nights to tell whether a series drifts."
    few = len(document.rows) - told
    return "No series drifts." + (f" Too few nights to tell of {few} of them." if few else "")


def _no_gate_at_fault(document: NightlyDocument) -> str:
    gated = any(one.gate is not None for one in document.rows)
    return "Every gate is of use." if gated else "No series of this night has a gate."


def _notes(name: str, title: str, notes: Sequence[str], none: str) -> Section:
    blocks: tuple[Block, ...] = tuple(Prose(in_words(note), Tone.WARNING) for note in notes)
    return Section(name, title, blocks or (Prose((none,)),))


def _failures(document: NightlyDocument) -> Section | None:
    if not document.failures:
        return None
    blocks = tuple(
        Prose(in_words(f"{one.scenario}: {one.text}"), Tone.WARNING) for one in document.failures
    )
    return Section("failures", "What could not be done", blocks)


def _cases(document: NightlyDocument) -> list[Case]:
    """One a series and one a failure; all pass exactly when the night's exit code is 0."""
    red = {
        (one.scenario, one.role or one.subject): one
        for one in document.findings
        if one.state != "fixed"
    }
    cases = []
    for one in document.rows:
        outcome, message = CaseOutcome.PASSED, one.reason
        found = red.pop(one.series, None)
        if found is not None or one.verdict == "bad":
            outcome = CaseOutcome.FAILED
            message = one.reason if found is None else f"{found.state}: {found.text}"
        elif one.verdict != "good":
            outcome = CaseOutcome.ERROR
        cases.append(Case(f"{one.scenario}: {one.subject}", outcome, message))
    for found in red.values():
        message = f"{found.state}: {found.text}"
        cases.append(Case(f"{found.scenario}: {found.subject}", CaseOutcome.FAILED, message))
    for failure in document.failures:
        cases.append(Case(failure.scenario, CaseOutcome.ERROR, failure.text))
    if document.exit_code and all(one.outcome is CaseOutcome.PASSED for one in cases):
        cases.append(Case("night", CaseOutcome.ERROR, document.verdict))
    return cases
