"""The report to paste into an issue."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from poolbisect.switches import words
from poolbisect.switches.workflow import ConfigReport


def markdown(report: ConfigReport, command: Sequence[str]) -> str:
    """The answer in Markdown: what was asked, the answer, what vouches for it, every launch."""
    request, finding = report.request, report.finding
    title = words.subject(report)
    lines = [
        f"# {_escaped(title)}: {_escaped(words.headline(finding))}",
        "",
        f"{_escaped(finding.reason[0].upper() + finding.reason[1:])}.",
        "",
        f"    {shlex.join(command)}",
        "",
        *_items(words.states_of(report, (*finding.culprit, *finding.certain, *finding.suspects))),
        *_items(f"{line[0].upper()}{line[1:]}." for line in words.evidence(report)),
        *_items(f"{line[0].upper()}{line[1:]}." for line in finding.remarks),
        "",
        f"## Launches ({len(report.launches)} of {2 ** len(request.switches)} configurations)",
        "",
        *_table(
            words.LAUNCH_HEADINGS,
            (
                words.launch_cells(number, record, report)
                for number, record in enumerate(report.launches, 1)
            ),
        ),
        "",
        "## Switches",
        "",
        *_items(words.states_of(report, tuple(switch.name for switch in request.switches))),
    ]
    if report.table:
        lines += [
            "",
            "## Score against concurrency, every other switch on",
            "",
            *_table(words.TABLE_HEADINGS, words.table_cells(report)),
        ]
    return "\n".join(lines) + "\n"


def _items(lines: Iterable[str]) -> list[str]:
    return [f"* {_escaped(line)}" for line in lines]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(headings)} |",
        f"|{'---|' * len(headings)}",
        *(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows),
    ]


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, in a table as well."""
    plain = " ".join(text.split())
    for character in "\\`*_|<>[]":
        plain = plain.replace(character, f"\\{character}")
    return plain
