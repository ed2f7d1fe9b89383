"""The one model every format is read into, and the checks all formats share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.evidence.outcomes import Tally

QuestionId = int | str
Fact = str | int | float


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user says of a file that does not say it itself.

    `subject`: which subject of a run, or its reference where `reference` is set; `metric`: which
    metric, filter or task, where several disagree; `attempt`: which numbered attempt; `scale`: 1
    or 100, what the best score reads; `asked`: how many questions were asked.
    """

    subject: str | None = None
    reference: bool = False
    metric: str | None = None
    attempt: int | None = None
    scale: int | None = None
    asked: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A file being read: where it is, and its text."""

    path: Path
    text: str = field(default="", repr=False)

    def error(self, message: str, line: int | None = None) -> UsageError:
        """A UsageError that names the file and, where there is one, the line (from 1)."""
        return UsageError(f"{self.path}{'' if line is None else f':{line}'}: {message}")

    def line_of(self, needle: str) -> int:
        """The first line that holds `needle`; 1 if none does."""
        at = self.text.find(needle)
        return 1 if at < 0 else self.text.count("\n", 0, at) + 1


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """One score and what is known about it.

    `score` is right answers over answered questions (0 to 1), None if nothing was answered.
    `asked` and `answered` count questions, None where the file does not say. `answers` maps a
    question to "answered rightly" and leaves lost questions out; `prompts` and `texts` are what
    was asked and answered, as far as known. `ended` is `measured` unless the file says how else.
    `facts` are what must agree before two scores are compared: model, task, shots, and so on.
    `scenario` is that of a run of ours.
    """

    source: str
    format: str
    score: float | None
    asked: int | None = None
    answered: int | None = None
    answers: Mapping[QuestionId, bool] | None = field(default=None, repr=False)
    accept_length: float | None = None
    partial: bool = False
    ended: str = "measured"
    facts: Mapping[str, Fact] = field(default_factory=dict)
    prompts: Mapping[QuestionId, str] = field(default_factory=dict, repr=False)
    texts: Mapping[QuestionId, str] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    scenario: str | None = None

    @property
    def correct(self) -> int | None:
        """Right answers: counted, or the whole number that the score and the count imply."""
        if self.answers is not None:
            return sum(self.answers.values())
        if self.score is None or self.answered is None:
            return None
        return min(self.answered, round(self.score * self.answered))

    @property
    def lost(self) -> int:
        """Questions asked and not answered, 0 where that is not known."""
        if self.asked is None or self.answered is None:
            return 0
        return max(0, self.asked - self.answered)

    @property
    def unusable(self) -> str | None:
        """Why this score counts neither for nor against anything; None if it counts."""
        if self.partial:
            done = f": {self.answered} of {self.asked} questions" if self.asked else ""
            return f"{self.source} is a partial run{done}"
        if self.ended != "measured":
            return f"{self.source} was not measured ({self.ended.replace('_', ' ')})"
        if self.asked is not None and self.answered is not None:
            right = self.correct or 0
            tally = Tally(right=right, wrong=self.answered - right, lost=self.lost)
            if tally.is_infra():
                return (
                    f"{self.source} lost {tally.lost} of {tally.asked} questions "
                    "to the infrastructure"
                )
        return None


def fraction(value: Any, source: Source, line: int | None, choice: Choice, name: str) -> float:
    """`value` as a score of 0 to 1. UsageError for anything else, above all a score above 1."""
    number = _number(value)
    if number is None:
        raise source.error(f"{name} is {str(value)[:40]!r}, not a score", line)
    top = choice.scale or 1
    if number < 0:
        raise source.error(f"{name} is {number:g}, below 0", line)
    if number > top:
        advice = "; if it is on a scale of 0 to 100, give --scale 100" if top == 1 else ""
        raise source.error(f"{name} is {number:g}, above {top} on a 0-{top} scale{advice}", line)
    return number / top


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def optional_number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    return _number(value)


def question_id(value: Any, source: Source, line: int, key: str = "id") -> QuestionId:
    """A question's id; "12" and 12 are the same question."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise source.error(f"{key} is {str(value)[:40]!r}, not a number or a text", line)
    if isinstance(value, str) and len(value) < 19 and value.isascii() and value.isdigit():
        return int(value) if str(int(value)) == value else value
    return value


def right_or_wrong(value: Any, source: Source, line: int, key: str) -> bool:
    """True or false; 1 and 0 are taken for them, and nothing else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    raise source.error(
        f"{key} is {str(value)[:40]!r}, neither right (true) nor wrong (false)", line
    )


def whole(value: Any) -> int | None:
    """A count that is a whole number of 0 or more, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isfinite(value) and value >= 0 and value == int(value) else None


def check_counts(
    source: Source, asked: int | None, answered: int | None, line: int | None = None
) -> None:
    """UsageError where a whole score claims to rest on fewer questions than were asked."""
    if asked is not None and answered is not None and asked != answered:
        raise source.error(
            f"{answered} of {asked} questions were answered, so the score is not that of all; "
            "run the rest again, or pass a file marked partial",
            line,
        )


def check_whole(
    source: Source, score: float, asked: int | None, digits: int, line: int | None
) -> None:
    """UsageError if no whole number of right answers gives `score`, known to `digits` places."""
    if asked and not is_whole(score, asked, digits):
        raise source.error(
            f"{score:g} is no whole number of right answers among {asked} questions; "
            "check how many were asked",
            line,
        )


def is_whole(score: float, asked: int, digits: int) -> bool:
    """Whether some whole number of right answers among `asked` reads `score` when rounded."""
    exact = score * asked
    return abs(exact - round(exact)) <= asked * 0.5 * 10.0**-digits + 1e-6


def facts_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Fact]:
    """The facts that are there: plain texts and numbers, empty ones left out."""
    return {
        name: value
        for name, value in pairs
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    }


def sampling_fact(temperature: Any) -> str | None:
    """How answers were drawn, in the words baselines use; None where it is not said."""
    number = _number(temperature)
    if number is None:
        return None
    return "greedy" if number == 0 else f"temperature {number:g}"
