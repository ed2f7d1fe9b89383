"""What a person sees of a comparison: both scores, the verdict, and the questions that differ."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolbisect.comparison import CompareReport, CompareVerdict, Discordant, score_interval
from poolbisect.evidence.paired import PairedComparison
from poolbisect.formats import ScoreFile

_HEADLINES = {
    CompareVerdict.NO_REGRESSION: ("no regression", "bold green"),
    CompareVerdict.REGRESSION: ("regression", "bold red"),
    CompareVerdict.INCONCLUSIVE: ("inconclusive", "bold yellow"),
    CompareVerdict.NOT_COMPARABLE: ("not comparable", "bold yellow"),
}
_LONGEST = 60
_NONE = "-"


def show_comparison(report: CompareReport, console: Console, questions: int) -> None:
    """Print a comparison, and up to `questions` of the lost and of the gained questions."""
    word, style = _HEADLINES[report.verdict]
    console.print(Text(word, style=style))
    table = Table("", "file", "score [95 %]", "questions", "accept length", header_style="bold")
    table.add_row("A", *_row(report.before))
    table.add_row("B", *_row(report.after))
    console.print(table)
    console.print(Text(f"{_plain(report.reason)}."))
    comparison = report.comparison
    if isinstance(comparison, PairedComparison):
        interval = comparison.interval
        console.print(
            Text(
                f"Paired over {comparison.n} questions: {comparison.lost} lost, "
                f"{comparison.gained} gained, {100 * comparison.difference:+.1f} points "
                f"[{100 * interval.low:+.1f}, {100 * interval.high:+.1f}], exact McNemar "
                f"p = {comparison.p_value:.2g}."
            )
        )
    elif comparison is not None:
        interval = comparison.interval
        console.print(
            Text(
                f"Unpaired: {100 * comparison.difference:+.1f} points "
                f"[{100 * interval.low:+.1f}, {100 * interval.high:+.1f}], z = "
                f"{comparison.z:.2f}, p = {comparison.p_value:.2g}."
            )
        )
    for note in report.notes:
        console.print(Text(f"Note: {_plain(note)}.", style="dim"))
    _questions("Lost (right in A, wrong in B)", report.lost, questions, console)
    _questions("Gained (wrong in A, right in B)", report.gained, questions, console)


def _row(score: ScoreFile) -> list[Text]:
    interval = score_interval(score)
    shown = _NONE if score.score is None else f"{score.score:.3f}"
    if interval is not None:
        shown += f" [{interval.low:.3f}, {interval.high:.3f}]"
    count = "not known" if score.answered is None else str(score.answered)
    if score.lost:
        count += f" of {score.asked}"
    length = _NONE if score.accept_length is None else f"{score.accept_length:.2f}"
    return [Text(_plain(score.source)), Text(shown), Text(count), Text(length)]


def _questions(title: str, found: tuple[Discordant, ...], questions: int, console: Console) -> None:
    if not found or not questions:
        return
    table = Table("id", "question", "A", "B", title=title, title_justify="left")
    for one in found[:questions]:
        cells = (one.prompt, one.before, one.after)
        table.add_row(Text(_short(str(one.id))), *(Text(_short(cell or _NONE)) for cell in cells))
    console.print(table)
    if len(found) > questions:
        console.print(Text(f"… and {len(found) - questions} more (--show N, or --json)."))


def _plain(text: str) -> str:
    """Text of a file without what would act on a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _short(text: str) -> str:
    line = _plain(" ".join(text.split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
