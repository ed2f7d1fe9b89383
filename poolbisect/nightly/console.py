"""A night as a person sees it: progress on stderr, then the table and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolbisect.canary import Watch
from poolbisect.nightly.request import Display
from poolbisect.nightly.subjects import short_name
from poolbisect.reporting.console import LiveProgress

_NONE = "-"
_HEADLINES = {
    "no_regression": ("no regression", "bold green"),
    "regression": ("regression", "bold red"),
    "inconclusive": ("inconclusive", "bold yellow"),
    "infrastructure": ("infrastructure failure: nothing was measured", "bold magenta"),
    "interrupted": ("interrupted", "bold yellow"),
}
_STATES = {"new": "bold red", "persistent": "red", "fixed": "green"}
_VERDICTS = {"good": "green", "bad": "bold red", "unknown": "yellow", "untestable": "yellow"}


class NightProgress(Display):
    """One progress display a scenario; close it after the night."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: LiveProgress | None = None

    def __enter__(self) -> NightProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None

    def scenario(self, name: str, number: int, count: int) -> Watch | None:
        self._end()
        self._console.print(Text.assemble((f"[{number}/{count}] ", "dim"), (name, "bold")))
        self._live = LiveProgress(self._console)
        self._live.__enter__()
        return self._live

    def says(self, words: str) -> None:
        self._end()
        self._console.print(Text(words, style="dim"))


def show(night: Mapping[str, Any], console: Console) -> None:
    """Print a night's document: the verdict, every series, findings, and what else to know."""
    word, style = _HEADLINES[night["verdict"]]
    title = Text.assemble(("nightly: ", "bold"), (word, style))
    console.print(title)
    if night["rows"]:
        console.print(_table(night["rows"]))
    for finding in night["findings"]:
        state = finding["state"]
        console.print(
            Text.assemble(
                (f"{state.upper()} ", _STATES[state]), (_where(finding), "bold"), finding["text"]
            )
        )
        if finding["culprit"]:
            console.print(_culprit(finding["culprit"]))
    for row in night["rows"]:
        if row["verdict"] not in ("good", "bad"):
            console.print(Text.assemble((_where(row), "bold"), row["reason"]))
    for label, colour in (("drift", "yellow"), ("gate_health", "yellow")):
        for text in night[label]:
            console.print(Text.assemble((f"{label.replace('_', ' ')}: ", colour), text))
    for failure in night["failures"]:
        console.print(
            Text.assemble(("failed: ", "magenta"), (f"{failure['scenario']}: ", "bold"))
            + Text(failure["text"])
        )
    joint = night["joint"]["text"]
    console.print(Text(f"{joint[0].upper()}{joint[1:]}.", style="dim"))
    console.print(Text(f"{night['seconds']:.0f} s. Report: {night['report']}", style="dim"))


def _where(one: Mapping[str, Any]) -> str:
    return f"{one['scenario']} ({_subject(one)}): "


def _subject(one: Mapping[str, Any]) -> str:
    """Role and subject, a commit by the beginning of its id."""
    role, subject = one["role"], one["subject"]
    return role if role == subject else f"{role}: {short_name(subject)}"


def _culprit(entry: Mapping[str, Any]) -> Text:
    name = entry.get("commit") or entry.get("release") or ""
    word = "confirmed" if entry.get("confirmed") else "not confirmed"
    return Text.assemble("  culprit ", (str(name)[:12], "bold"), f" ({word}): {entry['title']}")


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("scenario\nsubject", overflow="fold", min_width=22)
    table.add_column("accuracy\n(95 %)", no_wrap=True)
    table.add_column("nights before\nmean ± sd", no_wrap=True)
    table.add_column("best", no_wrap=True)
    table.add_column("baseline", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Mapping[str, Any]) -> list[Text]:
    accuracy, interval = row["accuracy"], row["interval"]
    score = row["ended"].replace("_", " ")
    if accuracy is not None:
        score = f"{accuracy:.3f}\n{interval[0]:.3f}-{interval[1]:.3f}"
    mean = _NONE
    if row["mean7"] is not None:
        spread = "" if row["sd7"] is None else f" ± {row['sd7']:.4f}"
        mean = f"{row['mean7']:.3f}{spread}\n{row['nights']} in all"
    return [
        Text.assemble((row["scenario"], "bold"), f"\n{_subject(row)}"),
        Text(score),
        Text(mean),
        Text(_NONE if row["best"] is None else f"{row['best']:.3f}"),
        Text(_NONE if row["baseline"] is None else row["baseline"].split(" ")[0]),
        Text(row["verdict"], style=_VERDICTS[row["verdict"]]),
    ]
