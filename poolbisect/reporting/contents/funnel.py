"""The steps of a bisect: what each left possible, and what all of them together say."""

from __future__ import annotations

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.funnel import SCORE, FunnelStep, funnel_chart, signs_of
from poolbisect.reporting.charts.intervals import common_range, interval_chart
from poolbisect.reporting.charts.posterior import posterior_chart
from poolbisect.reporting.contents.accuracy import TONES
from poolbisect.reporting.documents.bisect import BisectDocument, Step
from poolbisect.reporting.model import Block, Cell, Column, Figure, Section, Table, Tone


def funnel_section(document: BisectDocument) -> Section | None:
    if not document.steps:
        return None
    steps = [
        FunnelStep(
            one.number,
            one.position,
            one.entry.called[:12],
            one.verdict or (SCORE if one.ending == "measured" else one.ending),
            one.low,
            one.high,
            one.remaining,
        )
        for one in document.steps
    ]
    commits = max(document.commits, 1 + max(one.position for one in document.steps))
    culprit = None
    if document.culprit is not None:
        culprit = next(
            (one.position for one in document.steps if one.entry.name == document.culprit.name),
            None,
        )
    chart = funnel_chart(steps, commits, document.history, culprit)
    signs = signs_of(steps)
    caption = (
        "From the top: what was still possible after each step, and where it measured. "
        f"{signs[0].upper()}{signs[1:]}."
    )
    blocks: tuple[Block, ...] = (Figure(chart, caption), _table(document))
    return Section("funnel", "The funnel", blocks)


def _table(document: BisectDocument) -> Table:
    scores = [one.accuracy for one in document.steps if one.accuracy is not None]
    ends = [end for one in document.steps if one.interval for end in one.interval]
    limits = common_range([*scores, *ends])
    scored = bool(scores)
    logs = any(one.log for one in document.steps)
    columns = [
        Column("step", numeric=True),
        Column(document.history),
        Column("title"),
        Column("why there"),
        Column("verdict"),
        *(
            [
                Column("score (95 % interval)", numeric=True),
                Column(f"{limits[0]:.2f} to {limits[1]:.2f}"),
                Column("right / asked", numeric=True),
            ]
            if scored
            else []
        ),
        Column(f"{document.history}s left", numeric=True),
        Column("likeliest", numeric=True),
        Column("took", numeric=True),
        *([Column("log")] if logs else []),
    ]

    def row(one: Step) -> tuple[Cell, ...]:
        verdict = one.verdict or one.ending.replace("_", " ")
        if one.note and one.verdict != "good":
            verdict += f": {one.note}"
        tone = TONES.get(one.verdict or "", Tone.WARNING if one.verdict is None else Tone.PLAIN)
        if one.verdict is None and one.ending == "measured":
            verdict, tone = SCORE, Tone.PLAIN
        return (
            Cell(f"{one.number}", sort=one.number),
            Cell(one.entry.called, code=True),
            Cell(one.entry.title, code=True),
            Cell(one.reason),
            Cell(verdict, tone=tone),
            *(_score(one, limits) if scored else ()),
            Cell(numbers.count(one.remaining), sort=one.remaining),
            Cell(numbers.percent(one.mass), sort=one.mass),
            Cell(numbers.seconds(one.seconds), sort=one.seconds),
            *([Cell(one.log or numbers.NONE, code=True)] if logs else []),
        )

    return Table(
        "Every step",
        tuple(columns),
        tuple(row(one) for one in document.steps),
        filtered=len(document.steps) > 8,
    )


def _score(one: Step, limits: tuple[float, float]) -> tuple[Cell, ...]:
    if one.accuracy is None:
        return (Cell(numbers.NONE), Cell(), Cell(numbers.NONE))
    css = {"good": "good", "bad": "bad"}.get(one.verdict or "", "plain")
    words = f"{numbers.accuracy(one.accuracy)} ({numbers.interval(one.interval)})"
    return (
        Cell(words, sort=one.accuracy),
        Cell(chart=interval_chart(one.accuracy, one.interval, limits, css=css)),
        Cell(f"{numbers.count(one.correct)} / {numbers.count(one.asked)}", sort=one.asked),
    )


def posterior_section(document: BisectDocument) -> Section | None:
    if not document.posterior:
        return None
    weights = [(one.at.called[:12], one.weight) for one in document.posterior]
    rows = tuple(
        (
            Cell(one.at.called, code=True),
            Cell(numbers.day(one.at.date)),
            Cell(one.at.title, code=True),
            Cell(numbers.percent(one.weight), sort=one.weight),
        )
        for one in document.posterior
    )
    noun = document.history
    table = Table(
        f"Posterior of each {noun}, oldest first",
        (Column(noun), Column("date"), Column("title"), Column("probability", numeric=True)),
        rows,
        filtered=len(rows) > 8,
        folded=len(rows) > 8,
    )
    caption = f"How likely each {noun} is the one, given every answer."
    blocks: tuple[Block, ...] = (Figure(posterior_chart(weights, noun), caption), table)
    return Section("posterior", "Posterior", blocks)
