"""Accuracy of every subject with its interval, against the baseline band."""

from __future__ import annotations

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.intervals import common_range, interval_chart
from poolbisect.reporting.documents.run import BaselineScore, Result, RunDocument
from poolbisect.reporting.model import Cell, Column, Prose, Section, Table, Tone, in_words

TONES = {
    "good": Tone.GOOD,
    "bad": Tone.BAD,
    "unknown": Tone.WARNING,
    "untestable": Tone.WARNING,
}


def accuracy_section(document: RunDocument) -> Section:
    baseline = next((one.baseline_score for one in document.results if one.baseline_score), None)
    band = None if baseline is None else baseline_band(baseline)
    scores = [one.accuracy for one in document.results if one.accuracy is not None]
    ends = [end for one in document.results if one.interval for end in one.interval]
    limits = common_range([*scores, *ends, *(band or ())])
    speculative = any(one.accept_length is not None for one in document.results)
    columns = [
        Column("subject"),
        Column("verdict"),
        Column("accuracy (95 % interval)", numeric=True),
        Column(f"{limits[0]:.2f} to {limits[1]:.2f}"),
        Column("right", numeric=True),
        Column(f"against {document.reference}", numeric=True),
        Column("lost / gained", numeric=True),
        *([Column("accept length", numeric=True)] if speculative else []),
        Column("out of range", numeric=True),
    ]
    rows = tuple(_row(one, limits, band, baseline, speculative) for one in document.results)
    words = "Intervals: Wilson, 95 %. p: exact McNemar over the same questions."
    if baseline is not None and band is not None:
        spread = f"{baseline.mean:.3f} ± 2 {numbers.TIMES} {baseline.spread:.4f}"
        words += f" Band: baseline {baseline.name}, {spread} ({baseline.spread_kind})."
        if baseline.gate is not None:
            sign = ">" if baseline.gate_strict else "≥"
            words += f" Dashed line: its gate, {sign} {baseline.gate:g}."
    else:
        words += " No baseline with the same key is recorded, so there is no band."
    return Section(
        "accuracy",
        "Accuracy",
        (Table("Accuracy by subject", tuple(columns), rows), Prose(in_words(words))),
    )


def baseline_band(baseline: BaselineScore) -> tuple[float, float]:
    """Mean ± twice the recorded spread."""
    return baseline.mean - 2 * baseline.spread, baseline.mean + 2 * baseline.spread


def verdict_cell(verdict: str, as_expected: bool | None = None) -> Cell:
    words = verdict.replace("_", " ")
    if as_expected is not None:
        words += ", as\u00a0expected" if as_expected else ", NOT\u00a0expected"
    return Cell(words, tone=TONES.get(verdict, Tone.PLAIN))


def _row(
    one: Result,
    limits: tuple[float, float],
    band: tuple[float, float] | None,
    baseline: BaselineScore | None,
    speculative: bool,
) -> tuple[Cell, ...]:
    chart, paired, seen = None, one.comparison, one.out_of_range
    if one.accuracy is not None:
        chart = interval_chart(
            one.accuracy,
            one.interval,
            limits,
            css=TONES.get(one.verdict, Tone.PLAIN).value,
            band=band,
            gate=None if baseline is None else baseline.gate,
        )
    words = f"{numbers.accuracy(one.accuracy)} ({numbers.interval(one.interval)})"
    scored = Cell(words, sort=one.accuracy)
    if one.accuracy is None:
        scored = Cell(one.ended.replace("_", " "), tone=Tone.WARNING)
    answered = f"{one.correct:,} / {one.answered:,}"
    if one.answered != one.asked:
        answered += f" ({one.asked:,} asked)"
    accesses = f"{seen.reads + seen.writes:,}" if seen.watched else "not watched"
    accept = [Cell(numbers.number(one.accept_length), sort=one.accept_length)]
    return (
        Cell(one.subject, code=True),
        verdict_cell(one.verdict, one.as_expected),
        scored,
        Cell(chart=chart),
        Cell(answered, sort=one.correct),
        *(
            (Cell(numbers.NONE),) * 2
            if paired is None
            else (
                Cell(
                    f"{numbers.points(paired.difference)}, p {numbers.p_value(paired.p_value)}",
                    sort=paired.difference,
                ),
                Cell(f"{paired.lost:,} / {paired.gained:,}", sort=paired.lost),
            )
        ),
        *(accept if speculative else []),
        Cell(accesses, sort=seen.reads + seen.writes),
    )
