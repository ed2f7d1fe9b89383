"""The launches of a configuration bisect: every one, and the score against concurrency."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.intervals import common_range, interval_chart
from poolbisect.reporting.contents.accuracy import TONES, verdict_cell
from poolbisect.reporting.documents.config_bisect import (
    ConfigBisectDocument,
    LaunchMade,
    Scored,
)
from poolbisect.reporting.model import Cell, Column, Prose, Section, Table, Tone

REFERENCE = "reference"


def launches_section(document: ConfigBisectDocument) -> Section | None:
    launches = document.launches
    if not launches:
        return None
    every = numbers.plural(2 ** len(document.switches), "configuration")
    made = numbers.plural(len(launches), "launch", "launches")
    note = (
        f"{made}; {numbers.plural(len(document.switches), 'switch', 'switches')} have {every}. "
        "Intervals: Wilson, 95 %."
    )
    if _paired(launches):
        note += " Lost and gained: against everything off, over the same questions."
    blocks = (_scores(document), Prose((note,)), _explanations(document))
    return Section("launches", "Launches", blocks)


def _scores(document: ConfigBisectDocument) -> Table:
    launches = document.launches
    limits, paired = _limits(launches), _paired(launches)
    accepts = any(one.accept_length is not None for one in launches)
    columns = (
        Column("launch", numeric=True),
        Column("switches on"),
        Column("verdict"),
        *_score_columns(limits, paired),
        *([Column("accept length", numeric=True)] if accepts else []),
    )
    rows = tuple(
        (
            Cell(str(one.number), sort=one.number),
            Cell(configuration(one, document), sort=len(one.on)),
            verdict_cell(one.verdict or "compared with"),
            *_score_cells(one, limits, paired),
            *([Cell(numbers.number(one.accept_length), sort=one.accept_length)] * accepts),
        )
        for one in launches
    )
    return Table("Every launch, in order", columns, rows, filtered=len(rows) > 8)


def _explanations(document: ConfigBisectDocument) -> Table:
    logs = any(one.log for one in document.launches)
    columns = (
        Column("launch", numeric=True),
        Column("why it was made"),
        Column("verdict"),
        Column("explanation"),
        Column("took", numeric=True),
        *([Column("log")] if logs else []),
    )
    rows = tuple(
        (
            Cell(str(one.number), sort=one.number),
            Cell(one.reason),
            verdict_cell(one.verdict or "compared with"),
            Cell(one.explanation or one.detail),
            Cell(numbers.seconds(one.seconds), sort=one.seconds),
            *([Cell(one.log or numbers.NONE, code=True)] * logs),
        )
        for one in document.launches
    )
    return Table("How each launch was judged", columns, rows)


def concurrency_section(document: ConfigBisectDocument) -> Section | None:
    rows = document.concurrency
    if not rows:
        return None
    limits, paired = _limits(rows), _paired(rows)
    columns = (
        Column("in flight", numeric=True),
        Column("verdict"),
        *_score_columns(limits, paired),
        Column("last slot: requests"),
        Column("explanation"),
    )
    cells = tuple(
        (
            Cell(f"{one.concurrency:,}", sort=one.concurrency),
            verdict_cell(one.verdict or "compared with"),
            *_score_cells(one, limits, paired),
            Cell(_last_slot(one)),
            Cell(one.explanation or one.detail),
        )
        for one in rows
    )
    table = Table("The same configuration with more and more requests in flight", columns, cells)
    return Section("concurrency", "Score against concurrency, every other switch on", (table,))


def configuration(launch: LaunchMade, document: ConfigBisectDocument) -> str:
    """Which switches were on, told by those on or those off, whichever are fewer."""
    every = [switch.name for switch in document.switches]
    on = [name for name in every if name in launch.on]
    off = [name for name in every if name not in launch.on]
    words = ", ".join(on) or "none"
    if on and not off:
        words = "all"
    elif len(off) < len(on):
        words = f"all but {', '.join(off)}"
    if launch.role == REFERENCE:
        return f"{document.reference or REFERENCE}: {words}"
    return words


def accesses(launch: Scored) -> str:
    """Out-of-range reads and writes."""
    if launch.out_of_range_reads is None:
        return "not watched"
    return f"{launch.out_of_range_reads:,} / {launch.out_of_range_writes or 0:,}"


def outside(launch: Scored) -> int:
    return (launch.out_of_range_reads or 0) + (launch.out_of_range_writes or 0)


def _limits(launches: Sequence[Scored]) -> tuple[float, float]:
    scores = [one.accuracy for one in launches if one.accuracy is not None]
    return common_range([*scores, *(end for one in launches for end in one.interval or ())])


def _paired(launches: Sequence[Scored]) -> bool:
    return any(one.comparison is not None and one.comparison.paired for one in launches)


def _score_columns(limits: tuple[float, float], paired: bool) -> tuple[Column, ...]:
    return (
        Column("score (95 % interval)", numeric=True),
        Column(f"{limits[0]:.2f} to {limits[1]:.2f}"),
        *([Column("lost / gained", numeric=True)] if paired else []),
        Column("out of range, reads / writes", numeric=True),
    )


def _score_cells(one: Scored, limits: tuple[float, float], paired: bool) -> tuple[Cell, ...]:
    seen = Cell(accesses(one), sort=outside(one), tone=Tone.BAD if outside(one) else Tone.PLAIN)
    against, differ = one.comparison, Cell(numbers.NONE)
    if against is not None and against.paired:
        differ = Cell(f"{against.lost or 0:,} / {against.gained or 0:,}", sort=against.lost)
    rest = (differ, seen) if paired else (seen,)
    if one.accuracy is None:
        return Cell(one.ended.replace("_", " ")), Cell(), *rest
    chart = interval_chart(
        one.accuracy, one.interval, limits, css=TONES.get(one.verdict or "", Tone.PLAIN).value
    )
    words = f"{numbers.accuracy(one.accuracy)} ({numbers.interval(one.interval)})"
    return Cell(words, sort=one.accuracy), Cell(chart=chart), *rest


def _last_slot(one: Scored) -> str:
    if one.last_slot is None:
        return numbers.NONE
    return f"{one.last_slot}: {numbers.count(one.requests_on_last_slot)}"
