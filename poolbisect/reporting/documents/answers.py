"""The answers of one subject, from the JSONL beside a run's result.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from poolbisect.errors import UsageError
from poolbisect.formats.own_run import answers_file
from poolbisect.reporting.documents.run import Document


class AnswerLine(Document, frozen=True, kw_only=True):
    id: int
    correct: bool
    prompt: str = ""
    expected: int | float | str | None = None
    text: str = ""
    outcome: str = ""
    rank: int | None = None
    slot: int | None = None
    finish: str | None = None
    tokens: tuple[int, ...] = ()

    @property
    def answered(self) -> bool:
        return self.outcome != "unanswered"


_DECODER = msgspec.json.Decoder(AnswerLine)


def read_answers(folder: Path, subject: str) -> dict[int, AnswerLine]:
    """Question id to answer. UsageError names the file, and the line that is damaged."""
    path = answers_file(folder, subject)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"{path} is missing, so single answers of {subject} are not shown") from (
            error
        )
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: {reason.lower()}") from error
    answers: dict[int, AnswerLine] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            answer = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{path}:{number} is not an answer ({error}), so single answers of {subject} are "
                "not shown"
            ) from error
        answers[answer.id] = answer
    return answers
