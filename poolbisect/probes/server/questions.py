"""What a server is asked, and how its answers are graded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

import msgspec

from poolbisect.errors import UsageError
from poolbisect.measurement import Outcome
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME as MINIATURE
from poolbisect.tasks.problem_set import load_problems

FEW_SHOT_VERSION = "few-shot-1"
_PROBLEMS = 1319
# Where a few-shot model would go on with a question of its own, as in upstream's GSM8K eval.
_STOPS = ("Question", "Assistant:", "<|separator|>")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

Grade = Callable[[str, int], Outcome]


@dataclass(frozen=True, slots=True)
class Question:
    """One question: `prompt` is sent as it stands, `expected` is the number its answer ends on."""

    id: int
    prompt: str
    expected: int


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions in their order, with everything that must agree for two scores to be compared."""

    task: str
    questions: tuple[Question, ...]
    shots: int
    max_new_tokens: int
    stops: tuple[str, ...]
    harness: str
    grade: Grade

    def part(self, offset: int, count: int) -> QuestionSet:
        """`count` questions from number `offset` on, fewer where there are no more."""
        return replace(self, questions=self.questions[offset : offset + count])

    def __len__(self) -> int:
        return len(self.questions)


class _Line(msgspec.Struct):
    question: str
    answer: str


def miniature_questions(count: int | None = None, max_new_tokens: int = 96) -> QuestionSet:
    """The arithmetic problems of the miniatures. UsageError if there are not that many."""
    problems = load_problems(MINIATURE, count or _PROBLEMS)
    return QuestionSet(
        task=MINIATURE,
        questions=tuple(Question(p.id, p.prompt, p.answer) for p in problems),
        shots=0,
        max_new_tokens=max_new_tokens,
        stops=(),
        harness=arithmetic.HARNESS_VERSION,
        grade=lambda text, answer: Outcome(arithmetic.grade(text, answer)),
    )


def few_shot_questions(
    path: Path, shots: int = 5, count: int | None = None, max_new_tokens: int = 512
) -> QuestionSet:
    """Questions of a local file in GSM8K's form, one `{"question", "answer"}` a line.

    The first `shots` lines are shown with their answers before each question and are not asked.
    An answer ends on the number that is graded. UsageError names the file and the line at fault.
    """
    lines = _read(path)
    if len(lines) <= shots:
        raise UsageError(
            f"{path}: {len(lines)} lines are not enough for {shots} shots and a question; "
            "give fewer shots or a longer file"
        )
    shown = "".join(f"Question: {q.question}\nAnswer: {q.answer}\n\n" for q in lines[:shots])
    asked = tuple(
        Question(
            number,
            f"{shown}Question: {line.question}\nAnswer:",
            _expected(path, number, line.answer),
        )
        for number, line in enumerate(lines[shots:], start=shots)
    )
    if count is not None and count > len(asked):
        raise UsageError(
            f"{path} has {len(asked)} questions beside the {shots} shots, {count} were asked for"
        )
    return QuestionSet(
        task=path.stem,
        questions=asked[:count],
        shots=shots,
        max_new_tokens=max_new_tokens,
        stops=_STOPS,
        harness=FEW_SHOT_VERSION,
        grade=grade_last_number,
    )


def grade_last_number(text: str, expected: int) -> Outcome:
    """Right if the last number of `text` equals `expected`: 1,234 and 1234.00 are 1234."""
    number = last_number(text)
    if number is None:
        return Outcome.INVALID
    return Outcome.RIGHT if number == expected else Outcome.WRONG


def last_number(text: str) -> Decimal | None:
    """The last number of a text, None without one."""
    found = _NUMBER.findall(_THOUSANDS.sub("", text))
    try:
        return Decimal(found[-1]) if found else None
    except InvalidOperation:  # \d also matches digits of other scripts, some of them no decimals
        return None


def _expected(path: Path, number: int, answer: str) -> int:
    value = last_number(answer)
    if value is None or value != int(value):
        raise UsageError(f"{path}:{number + 1}: the answer ends on no whole number")
    return int(value)


def _read(path: Path) -> list[_Line]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    lines = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            lines.append(msgspec.json.decode(line, type=_Line))
        except msgspec.DecodeError as error:
            raise UsageError(
                f'{path}:{number}: not a {{"question": ..., "answer": ...}} object ({error})'
            ) from error
    return lines
