"""Earlier runs beside a run, and what their scores did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.trend import TrendPoint, trend_chart
from poolbisect.reporting.contents.accuracy import TONES, baseline_band, verdict_cell
from poolbisect.reporting.documents.run import BaselineScore, Document, Interval
from poolbisect.reporting.model import (
    Block,
    Cell,
    Column,
    Figure,
    Prose,
    Section,
    Table,
    Tone,
)

MOST = 366
"""Runs that a trend goes back."""


class ScoredSubject(Document, frozen=True, kw_only=True):
    subject: str
    verdict: str
    accuracy: float | None = None
    interval: Interval | None = None
    correct: int = 0
    answered: int = 0
    baseline_score: BaselineScore | None = None


class ScoredRun(Document, frozen=True, kw_only=True):
    """What a trend takes from a run's result.json; everything else is not even decoded."""

    schema: str
    scenario: str
    verdict: str
    started: str
    results: tuple[ScoredSubject, ...]
    questions: int = 0
    exit_code: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs of one scenario over the same number of questions, oldest first."""

    runs: tuple[ScoredRun, ...] = ()
    left_out: int = 0


_DECODER = msgspec.json.Decoder(ScoredRun)


def earlier_runs(folder: Path, scenario: str, started: str, questions: int) -> Trend:
    """The run in `folder` and those beside it that started before; damaged ones are left out."""
    found: list[ScoredRun] = []
    left_out = 0
    home = folder.resolve().parent
    for path in sorted(home.glob("*/result.json"))[-4 * MOST :]:
        try:
            run = _DECODER.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if run.scenario != scenario or not run.schema.startswith("poolbisect.run/"):
            continue
        if run.started > started:
            continue
        if run.questions != questions:
            left_out += 1
            continue
        found.append(run)
    found.sort(key=lambda run: run.started)
    return Trend(tuple(found[-MOST:]), left_out)


def trend_section(trend: Trend) -> Section | None:
    """A chart a subject and a table; None with fewer than two runs."""
    if len(trend.runs) < 2:
        return None
    blocks: list[Block] = list(trend_figures(trend.runs))
    rows = [
        (
            Cell(numbers.moment(run.started)),
            Cell(one.subject, code=True),
            Cell(numbers.accuracy(one.accuracy), sort=one.accuracy),
            Cell(numbers.interval(one.interval)),
            verdict_cell(one.verdict),
        )
        for run in reversed(trend.runs)
        for one in run.results
    ]
    blocks.append(
        Table(
            "Runs of this scenario over the same questions, newest first",
            (
                Column("started"),
                Column("subject"),
                Column("accuracy", numeric=True),
                Column("95 % interval", numeric=True),
                Column("verdict"),
            ),
            tuple(rows),
            filtered=len(rows) > 8,
            folded=len(rows) > 8,
        )
    )
    if trend.left_out:
        other = numbers.plural(trend.left_out, "run")
        blocks.append(
            Prose((f"{other} over another number of questions cannot be compared.",), Tone.PLAIN)
        )
    return Section("trend", "Trend", tuple(blocks))


def trend_figures(runs: tuple[ScoredRun, ...], scenario: str = "") -> list[Figure]:
    """One chart a subject, in the order of the newest run's subjects; `runs` oldest first."""
    figures: list[Figure] = []
    subjects = dict.fromkeys(one.subject for run in reversed(runs) for one in run.results)
    for subject in subjects:
        points, baseline = _points(runs, subject)
        if len(points) < 2:
            continue
        band = None if baseline is None else baseline_band(baseline)
        words = ""
        if baseline is not None:
            words = f"Band: baseline {baseline.mean:.3f} ± 2 {numbers.TIMES} {baseline.spread:.4f}."
        name = f"{scenario}, {subject}" if scenario else subject
        chart = trend_chart(points, f"{name}: accuracy", band, words)
        caption = f"{len(points)} runs, oldest first; a diamond is a bad one. {words}"
        figures.append(Figure(chart, caption.strip()))
    return figures


def _points(
    runs: tuple[ScoredRun, ...], subject: str
) -> tuple[list[TrendPoint], BaselineScore | None]:
    points: list[TrendPoint] = []
    baseline: BaselineScore | None = None
    for run in runs:
        for one in run.results:
            if one.subject != subject or one.accuracy is None:
                continue
            baseline = one.baseline_score or baseline
            hint = f"{numbers.moment(run.started)}: {one.accuracy:.3f}, {one.verdict}"
            css = TONES.get(one.verdict, Tone.PLAIN).value
            points.append(TrendPoint(run.started, one.accuracy, one.interval, css, hint))
    return points, baseline
