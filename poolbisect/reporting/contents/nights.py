"""A night beside the nights before it: what each series did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.trend import TrendPoint, trend_chart
from poolbisect.reporting.contents.accuracy import TONES, verdict_cell
from poolbisect.reporting.contents.trend import MOST
from poolbisect.reporting.documents.nightly import Row
from poolbisect.reporting.documents.run import Document
from poolbisect.reporting.model import Block, Cell, Column, Figure, Section, Table, Tone


class Night(Document, frozen=True, kw_only=True):
    """What a trend takes from a night's result.json."""

    schema: str
    started: str
    rows: tuple[Row, ...] = ()


_DECODER = msgspec.json.Decoder(Night)


def earlier_nights(folder: Path, started: str) -> tuple[Night, ...]:
    """The night in `folder` and those beside it before it, oldest first; damaged ones left out."""
    found = []
    for path in sorted(folder.resolve().parent.glob("*/result.json"))[-4 * MOST :]:
        try:
            night = _DECODER.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if night.schema.startswith("poolbisect.nightly/") and night.started <= started:
            found.append(night)
    found.sort(key=lambda night: night.started)
    return tuple(found[-MOST:])


def nights_section(nights: Sequence[Night]) -> Section | None:
    """A chart a series that was measured on two nights or more, and the numbers."""
    blocks: list[Block] = [*night_figures(nights)]
    if not blocks:
        return None
    blocks.append(_table(nights))
    return Section("trend", "Trend over nights", tuple(blocks))


def night_figures(nights: Sequence[Night]) -> list[Figure]:
    """One chart a series, `nights` oldest first."""
    series: dict[tuple[str, str], list[tuple[Night, Row]]] = defaultdict(list)
    for night in nights:
        for row in night.rows:
            if row.accuracy is not None:
                series[row.series].append((night, row))
    figures: list[Figure] = []
    for (scenario, role), measured in series.items():
        if len(measured) < 2:
            continue
        points = [
            TrendPoint(
                night.started,
                row.accuracy or 0.0,
                row.interval,
                TONES.get(row.verdict, Tone.PLAIN).value,
                f"{numbers.moment(night.started)}: {row.subject} {numbers.accuracy(row.accuracy)}",
            )
            for night, row in measured
        ]
        name = f"{scenario}, {role}"
        caption = f"{len(points)} nights, oldest first; a diamond is a bad one."
        figures.append(Figure(trend_chart(points, f"{name}: accuracy"), caption))
    return figures


def _table(nights: Sequence[Night]) -> Table:
    rows = tuple(
        (
            Cell(numbers.moment(night.started)),
            Cell(row.scenario, code=True),
            Cell(row.subject, code=True),
            Cell(numbers.accuracy(row.accuracy), sort=row.accuracy),
            Cell(numbers.interval(row.interval)),
            verdict_cell(row.verdict),
        )
        for night in reversed(nights)
        for row in night.rows
    )
    return Table(
        "Every night, newest first",
        (
            Column("night"),
            Column("scenario"),
            Column("subject"),
            Column("accuracy", numeric=True),
            Column("95 % interval", numeric=True),
            Column("verdict"),
        ),
        rows,
        filtered=True,
        folded=True,
    )
