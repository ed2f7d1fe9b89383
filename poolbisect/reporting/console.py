"""What a person sees: live progress on stderr, and the result as a table with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from poolbisect.canary import ContractFinding, RunReport
from poolbisect.engine.config import MappingAccess
from poolbisect.evidence.intervals import wilson
from poolbisect.evidence.verdict import Verdict
from poolbisect.judging import RunVerdict, SubjectVerdict
from poolbisect.probes.miniature import Tick
from poolbisect.reporting.attribution import attribution, workaround

_NONE = "-"
_SUBJECT_WIDTH = 13
"""Leaves the other columns their words at 80 columns."""
_STYLES = {
    Verdict.GOOD: "green",
    Verdict.BAD: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.UNTESTABLE: "yellow",
}
_HEADLINES = {
    RunVerdict.AS_EXPECTED: ("as expected", "bold green"),
    RunVerdict.REGRESSION: ("regression", "bold red"),
    RunVerdict.INCONCLUSIVE: ("inconclusive", "bold yellow"),
    RunVerdict.INFRASTRUCTURE: ("infrastructure failure", "bold magenta"),
    RunVerdict.INTERRUPTED: ("interrupted", "bold yellow"),
}


class LiveProgress:
    """A progress line per subject: questions done, accuracy so far, tokens/s, time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[score]}"),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> LiveProgress:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, subject: str, questions: int, tick: Tick) -> None:
        if subject not in self._tasks:
            self._tasks[subject] = self._progress.add_task(
                subject, total=questions, score="", speed=""
            )
        score = f"accuracy {tick.right / tick.done:.3f}" if tick.done else ""
        speed = f"{tick.tokens / tick.seconds:,.0f} tokens/s" if tick.seconds else ""
        self._progress.update(self._tasks[subject], completed=tick.done, score=score, speed=speed)


def show(report: RunReport, folder: Path, console: Console) -> None:
    """Print the result of a run: headline, table, reasons, attribution, where the files are."""
    word, style = _HEADLINES[report.verdict]
    scenario = report.scenario
    console.print(Text.assemble((f"{scenario.name}: ", "bold"), (word, style)))
    console.print(Text(scenario.title, style="dim"))
    console.print(_table(report))
    if scenario.engine.max_mamba_cache_size is not None:
        face = "with bounds, as torch does"
        if scenario.memory.mapping_access == MappingAccess.UNCHECKED:
            face = "without bounds, as a kernel does"
        access = scenario.memory.mapping_access.value
        console.print(f"Mapping access: {access} ({face}).", highlight=False)
    for verdict in report.verdicts:
        _explain(verdict, report, console)
    console.print(Text(f"Report: {folder}", style="dim"))


def show_contracts(findings: Sequence[ContractFinding], console: Console) -> None:
    """Print what the contract probe found, a line a buffer."""
    for finding in findings:
        console.print(Text(finding.subject, style="bold"))
        if finding.detail:
            console.print(Text(f"  {finding.ended.value.replace('_', ' ')}: {finding.detail}"))
        for contract in finding.contracts:
            console.print(Text(f"  {contract}", style="red" if contract.missing else ""))


def _table(report: RunReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    names = [_broken(verdict.measurement.subject) for verdict in report.verdicts]
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    table.add_column("subject", overflow="fold", min_width=min(longest, _SUBJECT_WIDTH))
    table.add_column("accuracy\n(95 %)", no_wrap=True)
    table.add_column(f"against\n{report.scenario.judging.reference}", no_wrap=True)
    table.add_column("accept\nlength", no_wrap=True)
    table.add_column("out of\nrange", no_wrap=True)
    table.add_column("last slot:\nrequests", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for verdict in report.verdicts:
        table.add_row(*_row(verdict))
    return table


def _broken(subject: str) -> str:
    """A name too wide for its column goes on after its kind, not in mid-word."""
    return subject if len(subject) <= _SUBJECT_WIDTH else subject.replace(":", ":\n", 1)


def _row(verdict: SubjectVerdict) -> list[Text]:
    measurement = verdict.measurement
    slots, memory = measurement.slots, measurement.memory
    accesses = "not\nwatched"
    if memory.watched:
        accesses = f"{memory.reads} reads\n{memory.writes} writes" if memory.buffers else "none"
    style = _STYLES[verdict.verdict]
    if verdict.as_expected and verdict.verdict is Verdict.BAD:
        style = "red"
    return [
        Text(_broken(measurement.subject), style="bold"),
        Text(_accuracy(verdict)),
        Text(_change(verdict)),
        Text(_NONE if measurement.accept_length is None else f"{measurement.accept_length:.2f}"),
        Text(accesses, style="red" if memory.buffers else ""),
        Text(_NONE if slots is None else f"{slots.last_slot}: {slots.requests_on_last_slot}"),
        Text(_verdict(verdict), style=style),
    ]


def _accuracy(verdict: SubjectVerdict) -> str:
    measurement = verdict.measurement
    if measurement.accuracy is None:
        return measurement.ended.value.replace("_", "\n")
    interval = wilson(measurement.correct, measurement.answered)
    lines = [f"{measurement.accuracy:.3f}", f"{interval.low:.3f}-{interval.high:.3f}"]
    if measurement.answered != measurement.asked:
        lines.append(f"{measurement.answered} of {measurement.asked}")
    return "\n".join(lines)


def _change(verdict: SubjectVerdict) -> str:
    paired = verdict.comparison
    if paired is None:
        return _NONE
    if not paired.lost and not paired.gained:
        return "no answer\ndiffers"
    return (
        f"{100 * paired.difference:+.1f} pt\n{paired.lost} lost\n{paired.gained} gained\n"
        f"p {_p(paired.p_value)}"
    )


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"= {value:.4f}"


def _verdict(verdict: SubjectVerdict) -> str:
    if verdict.as_expected is None:
        return verdict.verdict.value
    return f"{verdict.verdict.value},\n{'as' if verdict.as_expected else 'NOT'} expected"


def _explain(verdict: SubjectVerdict, report: RunReport, console: Console) -> None:
    name = verdict.measurement.subject
    contracts = report.contracts.get(name, ())
    console.print(Text.assemble((f"{name}: ", "bold"), f"{verdict.reason.rstrip('.')}."))
    if verdict.baseline_note and verdict.verdict is not Verdict.BAD:
        note = verdict.baseline_note
        console.print(Text(f"  {note[0].upper()}{note[1:]}."))
    words = attribution(verdict)
    if words:
        console.print(Text(f"  {words}"))
    else:
        for contract in contracts:
            if contract.missing:
                console.print(Text(f"  {contract}."))
    remedy = workaround(contracts, report.scenario)
    if remedy is not None and verdict.verdict is Verdict.BAD:
        console.print(Text(f"  Workaround: {remedy}."))
