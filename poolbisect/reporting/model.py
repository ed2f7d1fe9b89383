"""The report model: what every report says, whatever it is rendered to.

A document (a run, a bisect, a timeline, a night) is turned into a `Report` by `contents/`; HTML,
Markdown and JUnit are drawn from it by `rendering/`. Text from outside (commit titles, model
output) is kept as it came: making it harmless is the renderer's work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from poolbisect.reporting.charts.shapes import Chart


class Tone(StrEnum):
    """How something is to be taken; shown as a word or sign, and as a colour."""

    GOOD = "good"
    BAD = "bad"
    WARNING = "warning"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Code:
    """A name, a hash, a commit title or a model's words: shown as it is, apart from prose."""

    text: str


Words = tuple[str | Code, ...]

_WORD = re.compile(r"[\w./]{2,200}(?:\[[\d. ]{1,20}\])?(?::\d{1,7})?")
_COMMIT = re.compile(r"[0-9a-f]{8,40}")


def in_words(text: str) -> Words:
    """Prose in which names of code, paths and commits are told apart."""
    words: list[str | Code] = []
    position = 0
    for found in _WORD.finditer(text):
        word = found[0].rstrip(".")
        if _is_name(word):
            words += [text[position : found.start()], Code(word)]
            position = found.start() + len(word)
    words.append(text[position:])
    return tuple(word for word in words if word)


def _is_name(word: str) -> bool:
    if word.endswith("]") or "_" in word:
        return True
    if "/" in word:
        return "." in word.rsplit("/", 1)[-1]
    return _COMMIT.fullmatch(word) is not None and not word.isalpha() and not word.isdigit()


def as_text(words: Words) -> str:
    return "".join(word.text if isinstance(word, Code) else word for word in words)


@dataclass(frozen=True, slots=True)
class Marked:
    """A text with the place where it differs from another; `mark` is empty at its end."""

    before: str
    mark: str
    after: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `sort` is what it is sorted by where that is not its text."""

    text: str = ""
    sort: float | str | None = None
    tone: Tone = Tone.PLAIN
    code: bool = False
    link: str | None = None
    marked: Marked | None = None
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption. `filtered` offers a search field, `folded` hides it behind a click.

    A row's first cell names the row.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    filtered: bool = False
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, with what to look for in it. The numbers are in a table beside it."""

    chart: Chart
    caption: str


@dataclass(frozen=True, slots=True)
class Prose:
    words: Words
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Commands:
    """Command lines to copy."""

    label: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    value: str
    note: str = ""
    tone: Tone = Tone.PLAIN
    code: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    items: tuple[Fact, ...]


Block = Table | Figure | Prose | Commands | Facts


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report; `name` is its anchor."""

    name: str
    title: str
    blocks: tuple[Block, ...]


class CaseOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Nothing was learnt, or not enough: never a pass."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Case:
    """What JUnit calls a test case: one thing that was checked."""

    name: str
    outcome: CaseOutcome
    message: str = ""
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report. `kind` is run, bisect, configuration bisect, timeline or night.

    `started` is an ISO time in UTC.
    """

    kind: str
    name: str
    verdict: str
    tone: Tone
    headline: Words
    summary: tuple[Words, ...]
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    cases: tuple[Case, ...]
    started: str = ""
    seconds: float = 0.0
    exit_code: int = 0

    @property
    def title(self) -> str:
        return f"{self.name}: {self.verdict}"
