"""The timeline as a person sees it: progress on stderr, transitions as a table."""

from __future__ import annotations

from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from poolbisect.timeline.transitions import Kind
from poolbisect.timeline.words import change, subject
from poolbisect.timeline.workflow import Timeline

_STYLES = {
    Kind.INTRODUCED: "bold red",
    Kind.REINTRODUCED: "bold red",
    Kind.FIXED: "green",
    Kind.CHANGED: "yellow",
}
_MOST_REASONS = 3


class ProbeProgress:
    """A line with the probes done, of those that are known to be needed so far."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("contract probe"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> ProbeProgress:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, done: int, needed: int) -> None:
        self._progress.update(self._task, completed=done, total=needed)


def show(timeline: Timeline, console: Console) -> None:
    """Print what was looked at, and every transition."""
    entries = timeline.history.entries
    unit = timeline.history.kind
    console.print(
        Text.assemble(
            ("timeline: ", "bold"),
            f"{entries[0].short}..{entries[-1].short}, {len(entries)} {unit}s, "
            f"{timeline.probed} probed, {len(timeline.untestable)} untestable, "
            f"{timeline.seconds:.1f} s",
        )
    )
    if timeline.transitions:
        console.print(_table(timeline))
    else:
        console.print(
            Text(f"No transition: every {unit} keeps the contract as the first one does.")
        )
    for reason, count in Counter(timeline.untestable.values()).most_common(_MOST_REASONS):
        console.print(Text(f"{count} untestable: {reason}", style="yellow"))


def _table(timeline: Timeline) -> Table:
    table = Table(header_style="bold")
    for heading in (timeline.history.kind, "date", "kind", "what", "pools", "before → after"):
        table.add_column(heading, no_wrap=heading in ("commit", "date"))
    previous = None
    for transition in timeline.transitions:
        entry = timeline.entry(transition.position)
        if transition.position != previous:
            table.add_section()
            date = "" if entry.date is None else f"{entry.date:%Y-%m-%d}"
            table.add_row(Text(entry.short, style="bold"), date, "", Text(entry.title, "italic"))
            previous = transition.position
        table.add_row(
            "",
            "",
            Text(transition.kind.value, style=_STYLES[transition.kind]),
            Text(subject(transition)),
            Text(", ".join(kind.value for kind in transition.pools)),
            Text(change(transition)),
        )
    return table
