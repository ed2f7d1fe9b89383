"""A bisect as a person sees it: the range narrowing on stderr, the answer on stdout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich import box
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from poolbisect.bisection.outcome import Ending, Kind, Verdict
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.culprit.outcome import BisectOutcome, Confirmed, Seen
from poolbisect.culprit.steps import Step
from poolbisect.culprit.watcher import Watcher
from poolbisect.evidence.intervals import wilson
from poolbisect.history.ranges import HistoryRange
from poolbisect.reporting.blame_words import attribution_words, entry_words
from poolbisect.reporting.numbers import plural
from poolbisect.timeline import Timeline
from poolbisect.timeline.probers import Watch as TimelineWatch

_WIDTH = 20
_STYLES = {"good": "green", "bad": "bold red"}
_HEADLINES = {
    "culprit": "bold red",
    "second_step": "bold red",
    "both_good": "bold yellow",
    "both_bad": "bold yellow",
    "reversed": "bold yellow",
}
_WORDS = {
    Kind.CULPRIT: "culprit found",
    Kind.SECOND_STEP: "culprit found, and another step",
    Kind.SUSPECT_RANGE: "a range of suspects",
    Kind.BOTH_GOOD: "both ends are good",
    Kind.BOTH_BAD: "both ends are bad",
    Kind.REVERSED: "the ends are the other way round",
    Kind.DRIFT: "a drift, no step",
    Kind.FLAKY: "flaky, no step",
    Kind.ENVIRONMENT: "the environment changed, not the code",
    Kind.UNTESTABLE: "an end cannot be measured",
    Kind.INFRASTRUCTURE: "the host failed",
}


class Funnel(Watcher):
    """A line for each probe, with the part of the range that is still open."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = Status("", console=console)
        self._entries: Sequence[object] = ()
        self._history: HistoryRange | None = None

    def __enter__(self) -> Funnel:
        self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._status.stop()

    def planned(self, history: HistoryRange, plan: Plan, resumed: Sequence[Step]) -> None:
        self._history = history
        first, last = history.entries[0], history.entries[-1]
        self._console.print(
            Text(
                f"{first.short}..{last.short}, {plural(len(history), history.kind)}: "
                f"{expected(plan, history)}"
            )
        )
        if resumed:
            self._console.print(Text(f"resumed after {plural(len(resumed), 'probe')}:"))
        for step in resumed:
            self.step(step)

    def surveyed(self, found: Timeline) -> None:
        self._status.update("")
        changes = len(found.transitions)
        self._console.print(
            Text(
                f"contract timeline: {plural(changes, 'transition')}, {found.probed} probed, "
                f"{found.seconds:.1f} s"
            )
        )

    def survey(self) -> TimelineWatch | None:
        return lambda done, needed: self._status.update(f"contract timeline {done}/{needed}")

    def probing(self, position: int, questions: int, reason: str) -> None:
        assert self._history is not None
        entry = self._history.entries[position]
        self._status.update(Text(f"{entry.short}: {reason}"))

    def says(self, words: str) -> None:
        self._status.update(Text(words))

    def step(self, step: Step) -> None:
        assert self._history is not None
        entry = self._history.entries[step.position]
        left, style = _saw(step)
        line = Text.assemble(
            (f"{step.number:3d} ", "dim"),
            f"{funnel(step, len(self._history))} {step.remaining:>5} left  ",
            (f"{entry.short:<14}", "bold"),
            (f"{left:<20}", style),
            (entry.title, "dim"),
        )
        line.truncate(max(self._console.width, 60), overflow="ellipsis")
        self._console.print(line, highlight=False)

    def confirming(self, culprit: int) -> None:
        assert self._history is not None
        self._status.update(Text(f"confirming {self._history.entries[culprit].short}"))


def expected(plan: Plan, history: HistoryRange) -> str:
    """What to expect before the start: probes, and questions where a probe asks any."""
    midpoints = max(0, math.ceil(math.log2(max(len(history) - 1, 1))))
    if plan.mode is Mode.EXACT:
        return f"at most {2 + midpoints} probes, unless some cannot be tested"
    if plan.mode is Mode.VERDICTS:
        return f"about {2 * (2 + midpoints)} probes, more where verdicts disagree"
    ends = 4 if plan.mode is Mode.PAIRED else 2
    questions = ends * plan.first_questions + midpoints * plan.smallest_batch
    return (
        f"{ends + midpoints} probes or more, {questions:,} questions or more, as many as "
        f"{plan.confidence:.0%} confidence needs"
    )


def funnel(step: Step, positions: int) -> str:
    """The range as a bar: what is still open is filled, the probed place marked."""
    scale = _WIDTH / positions
    cells = ["·"] * _WIDTH
    for cell in range(int(step.low * scale), min(_WIDTH, int(step.high * scale) + 1)):
        cells[cell] = "█"
    cells[min(_WIDTH - 1, int(step.position * scale))] = "┃"
    return "".join(cells)


def _saw(step: Step) -> tuple[str, str]:
    seen = step.observation
    if seen.verdict is not None:
        return seen.verdict.value, _STYLES[seen.verdict.value]
    if seen.ending is not Ending.MEASURED:
        return seen.ending.value.replace("_", " "), "yellow"
    if not seen.asked:
        return "measured", ""
    interval = wilson(seen.correct, seen.asked)
    return f"{seen.correct / seen.asked:.3f} ({interval.low:.3f}-{interval.high:.3f})", ""


def show(outcome: BisectOutcome, folder: Path, console: Console) -> None:
    """Print the answer: who, how sure, confirmed how, which buffer, and where the files are."""
    result, entries = outcome.result, outcome.history.entries
    name = outcome.request.scenario.name if outcome.request.scenario else "bisect"
    headline = "interrupted"
    if result is not None and not outcome.interrupted:
        headline = _WORDS[result.kind]
    style = _HEADLINES.get(outcome.verdict, "bold yellow")
    console.print(Text.assemble((f"{name}: ", "bold"), (headline, style)))
    if outcome.interrupted:
        console.print(Text(f"Go on with: poolbisect bisect --resume {folder}"))
    if result is None:
        return
    named = outcome.innermost
    if named.found and named.result is not None and named.result.culprit is not None:
        _culprit(named, named.result.culprit, console)
    elif result.suspects is not None and result.kind is Kind.SUSPECT_RANGE:
        _suspects(outcome, result.suspects, console)
    console.print(Text(f"{result.reason[0].upper()}{result.reason[1:].rstrip('.')}."))
    for first, last in result.others:
        span = (
            entries[last].short
            if first == last
            else f"{entries[first].short}..{entries[last].short}"
        )
        console.print(Text(f"Another step is at {span}; bisect that part for its commit."))
    for note in dict.fromkeys((*outcome.notes, *named.notes)):
        console.print(Text(f"Note: {note}.", style="yellow"))
    if named.remark:
        console.print(Text(f"Note: {named.remark}.", style="yellow"))
    if named.attribution is not None:
        console.print(Text(attribution_words(named.attribution)))
    if outcome.inside is not None:
        console.print(Text(outcome.inside.text))
    _spent(outcome, console)
    console.print(Text(f"Report: {folder}", style="dim"))


def _culprit(outcome: BisectOutcome, position: int, console: Console) -> None:
    result, entry = outcome.result, outcome.history.entries[position]
    assert result is not None
    introduced = outcome.request.find.value == "introduced"
    word, style = ("first bad", "bold red") if introduced else ("first fixed", "bold green")
    console.print(Text.assemble((f"{word}: ", "bold"), (entry_words(entry), style)))
    sure = "as sure as the probe, which says the same every time"
    if outcome.plan.mode is not Mode.EXACT:
        sure = f"{result.confidence:.4f}" if result.confidence < 0.9999 else "above 0.9999"
    console.print(Text(f"confidence: {sure}"))
    if outcome.confirmation is None:
        return
    table = Table(box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, one in (
        ("before it", outcome.confirmation.parent),
        ("itself", outcome.confirmation.culprit),
        ("newer end without it", outcome.confirmation.revert),
    ):
        table.add_row(label, *_confirmed(one))
    console.print(table)


def _confirmed(one: Confirmed) -> tuple[Text, Text]:
    if one.seen is Seen.NOT_TRIED:
        return Text("not tried", style="dim"), Text(one.text)
    return Text(one.seen.value, style=_STYLES.get(one.seen.value, "yellow")), Text(one.text)


def _suspects(outcome: BisectOutcome, suspects: tuple[int, int], console: Console) -> None:
    entries = outcome.history.entries
    first, last = suspects
    count = last - first + 1
    console.print(Text(f"{plural(count, 'suspect')}, oldest first:"))
    most = 12
    for position in range(first, min(last, first + most - 1) + 1):
        console.print(Text(f"  {entry_words(entries[position])}"))
    if count > most:
        console.print(Text(f"  … and {count - most} more, to {entry_words(entries[last])}"))


def _spent(outcome: BisectOutcome, console: Console) -> None:
    asked = sum(s.observation.asked for s in outcome.steps if s.observation.verdict is None)
    questions = f", {plural(asked, 'question')}" if asked else ""
    good = sum(s.observation.verdict is Verdict.GOOD for s in outcome.steps)
    bad = sum(s.observation.verdict is Verdict.BAD for s in outcome.steps)
    judged = f" ({good} good, {bad} bad)" if good + bad else ""
    console.print(
        Text(
            f"{plural(len(outcome.history), outcome.history.kind)}, "
            f"{plural(len(outcome.steps), 'probe')}{judged}{questions}, "
            f"{outcome.seconds:.1f} s, probe: {outcome.request.probe}",
            style="dim",
        )
    )
