"""index.html over all runs below a reports folder: a line for every run, and the trends."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

from poolbisect.errors import UsageError
from poolbisect.reporting import numbers
from poolbisect.reporting.contents.nights import night_figures
from poolbisect.reporting.contents.overview import Listed, listed_runs
from poolbisect.reporting.contents.trend import MOST, trend_figures
from poolbisect.reporting.documents.reading import RESULT
from poolbisect.reporting.model import (
    Block,
    Cell,
    Column,
    Fact,
    Prose,
    Section,
    Table,
    Tone,
    in_words,
)

INDEX = "index.html"


def write_index(reports: Path) -> Path:
    """Write `reports`/index.html; its path.

    Damaged files are named in it and the other runs are shown all the same. UsageError if there is
    no such folder, or if it cannot be written.
    """
    from poolbisect.reporting.rendering.html import page

    if not reports.is_dir():
        raise UsageError(f"{reports}: there is no such folder; give the folder of the reports")
    runs, faults = listed_runs(reports)
    sections = [_all(runs, reports), *_trends(runs)]
    if faults:
        blocks: tuple[Block, ...] = tuple(
            Prose(in_words(f"{fault}."), Tone.WARNING) for fault in faults
        )
        sections.append(Section("not-shown", "What could not be read", blocks))
    content = page(
        "index.html.j2",
        f"poolbisect: {numbers.plural(len(runs), 'report')}",
        {"sections": sections, "facts": _facts(runs, faults), "headline": _headline(runs)},
    )
    path = reports / INDEX
    fresh = path.with_name(f".{INDEX}.{os.getpid()}")
    try:
        fresh.write_text(content, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{path}: cannot be written ({reason})") from error
    finally:
        fresh.unlink(missing_ok=True)
    return path


def _headline(runs: list[Listed]) -> str:
    if not runs:
        return "No reports yet."
    newest = runs[0]
    when = numbers.moment(newest.started)
    return f"Newest: {newest.kind} {newest.name}, {newest.verdict} ({when})."


def _facts(runs: list[Listed], faults: list[str]) -> tuple[Fact, ...]:
    bad = sum(one.tone is Tone.BAD for one in runs)
    facts = [
        Fact("reports", f"{len(runs):,}"),
        Fact("with a regression", f"{bad:,}", tone=Tone.BAD if bad else Tone.PLAIN),
    ]
    if faults:
        facts.append(Fact("could not be read", f"{len(faults):,}", tone=Tone.WARNING))
    return tuple(facts)


def _trends(runs: list[Listed]) -> list[Section]:
    """A chart a series of the nights, and one a scenario and subject of all runs.

    Runs that asked another number of questions than the newest are left out.
    """
    by_scenario: dict[str, list[Listed]] = defaultdict(list)
    for one in runs:
        if one.run is not None:
            by_scenario[one.name].append(one)
    nights = [one.night for one in runs if one.night is not None]
    blocks: list[Block] = [*night_figures(list(reversed(nights[:MOST])))]
    for name in sorted(by_scenario):
        listed = by_scenario[name]
        newest = listed[0].run
        assert newest is not None
        comparable = [
            one.run for one in listed if one.run and one.run.questions == newest.questions
        ]
        figures = trend_figures(tuple(reversed(comparable[:MOST])), name)
        blocks += figures
        if figures and len(comparable) < len(listed):
            other = numbers.plural(len(listed) - len(comparable), "run")
            blocks.append(Prose((f"{name}: {other} over another number of questions left out.",)))
    return [Section("trends", "Trends", tuple(blocks))] if blocks else []


def _all(runs: list[Listed], reports: Path) -> Section:
    rows = tuple(
        (
            Cell(numbers.moment(one.started) or one.folder.name, link=_link(one.folder, reports)),
            Cell(one.kind),
            Cell(one.name, code=True),
            Cell(one.verdict, tone=one.tone),
            Cell(one.words),
            Cell(numbers.seconds(one.seconds), sort=one.seconds),
        )
        for one in runs
    )
    table = Table(
        "Every report, newest first",
        (
            Column("started"),
            Column("kind"),
            Column("of"),
            Column("verdict"),
            Column("what it says"),
            Column("took", numeric=True),
        ),
        rows,
        filtered=True,
    )
    return Section("reports", "Reports", (table,))


def _link(folder: Path, reports: Path) -> str:
    """Relative, to the report where there is one, and escaped as part of an address."""
    target = folder / "report.html"
    if not target.is_file():
        target = folder / RESULT
    relative = target.relative_to(reports).as_posix()
    return "./" + quote(relative.encode("utf-8", "surrogateescape"))
