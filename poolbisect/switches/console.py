"""A configuration bisect as a person sees it: progress on stderr, the answer as tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from rich import box
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from poolbisect.switches import words
from poolbisect.switches.finding import Answer
from poolbisect.switches.launch import LaunchRequest, Role
from poolbisect.switches.workflow import ConfigReport

_STYLES = {
    Answer.CULPRIT: "bold green",
    Answer.INFRASTRUCTURE: "bold magenta",
}
_VERDICTS = {"good": "green", "bad": "bold red", "unknown": "yellow", "untestable": "yellow"}


class LaunchProgress:
    """One line on stderr: which launch is running, why, and how far it is."""

    def __init__(self, console: Console, total: int) -> None:
        self._status = Status("", console=console)
        self._total = total
        self._count = 0
        self._what = ""

    def __enter__(self) -> LaunchProgress:
        self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._status.stop()

    def announce(self, request: LaunchRequest, reason: str) -> None:
        """A launch begins."""
        self._count += 1
        on = f"{len(request.on)} of {self._total} switches on"
        whose = " (reference)" if request.role is Role.REFERENCE else ""
        self._what = f"launch {self._count}{whose}: {on}, {reason}"
        self._status.update(Text(self._what))

    def watch(self, words_on_it: str) -> None:
        """How far the launch is."""
        self._status.update(Text(f"{self._what}: {words_on_it}"))


def show(report: ConfigReport, folder: Path, console: Console) -> None:
    """Print the answer: headline, what was launched, what vouches for it, where the files are."""
    finding = report.finding
    title = words.subject(report)
    style = _STYLES.get(finding.answer, "bold yellow")
    console.print(Text.assemble((f"{title}: ", "bold"), (words.headline(finding), style)))
    console.print(Text(f"{finding.reason[0].upper()}{finding.reason[1:]}."))
    for line in words.states_of(report, (*finding.culprit, *finding.certain, *finding.suspects)):
        console.print(Text(f"  {line}", style="dim"))
    if report.launches:
        cells = (
            words.launch_cells(number, record, report)
            for number, record in enumerate(report.launches, 1)
        )
        console.print(_table(words.LAUNCH_HEADINGS, cells))
    for line in (*words.evidence(report), *finding.remarks):
        console.print(Text(f"• {line[0].upper()}{line[1:]}."))
    if report.table:
        console.print(Text("\nScore against concurrency, every other switch on", style="bold"))
        console.print(_table(words.TABLE_HEADINGS, words.table_cells(report)))
    console.print(Text(f"Report: {folder}", style="dim"))


def _table(headings: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        *cells, verdict = row
        table.add_row(*map(Text, cells), Text(verdict, style=_VERDICTS.get(verdict, "")))
    return table
