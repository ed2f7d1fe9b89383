"""The score of one run: from its output or a file, in any of the known formats."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.formats import Choice, ScoreFile, lm_eval_table
from poolbisect.formats.printed_lines import statements
from poolbisect.formats.reading import parse_bytes, parse_score
from poolbisect.formats.score_file import QuestionId, Source, fraction, optional_number, whole
from poolbisect.formats.source_file import read_source, source_of
from poolbisect.formats.terminal_text import segments
from poolbisect.probes.command.options import CommandOptions

_TAIL = 1 << 26
_LOST = re.compile(r"(\d+) of (\d+) questions were answered")
_NONE_THERE = re.compile(r"(:\d+)?: (no score|not JSON|the JSON breaks off|holds a JSON)")


class NoScoreError(Exception):
    """There is no score, or none that can be read; the message names the file and the line."""


class UnreadableError(NoScoreError):
    """A score is stated, and it cannot be read as one, so that it must not pass for none."""


class LostError(Exception):
    """Questions were lost to the infrastructure, so the score counts for nothing."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A score of 0 to 1, and what it rests on as far as known: right answers, questions answered
    and asked, each question's outcome in the order of the file, the accept length."""

    score: float
    correct: int | None = None
    answered: int | None = None
    asked: int | None = None
    answers: Mapping[QuestionId, bool] | None = field(default=None, repr=False)
    accept_length: float | None = None
    format: str = ""

    @property
    def counts(self) -> tuple[int, int] | None:
        """(right, answered), where both are known."""
        if self.correct is None or not self.answered:
            return None
        return self.correct, self.answered


def read_file(path: Path, options: CommandOptions, asked: int | None) -> Reading:
    """The score in a file; `asked` is how many questions it should rest on, if that is known.

    Raises:
        NoScoreError, LostError.
    """
    source = Source(path)
    try:
        source = read_source(path)
        if options.chooses_score:
            return _chosen(source, options, asked)
        return _known(parse_score(source, _choice(options, path.suffix, asked)), asked)
    except UsageError as error:
        raise _problem(error, source, options) from error


def read_output(stdout: Path, log: Path, options: CommandOptions, asked: int | None) -> Reading:
    """The score on standard output; how many questions it rests on may be in the rest of the log.

    Raises:
        NoScoreError, LostError.
    """
    source = source_of(Path("standard output"), _tail(stdout))
    try:
        if options.chooses_score:
            return _chosen(source, options, asked)
        choice = _choice(options, "", asked)
        reading = _known(parse_score(source, choice), asked)
    except UsageError as error:
        raise _problem(error, source, options) from error
    if reading.asked is not None:
        return reading
    try:
        whole_log = _known(parse_bytes(_tail(log), "the log", choice), asked)
    except UsageError as error:
        if _LOST.search(str(error)):
            raise _problem(error, source, options) from error
        return reading
    return whole_log if whole_log.score == reading.score else reading


def _choice(options: CommandOptions, suffix: str, asked: int | None) -> Choice:
    # Missing lines of a file with one line a question are counted by `_known`.
    told = None if suffix == ".jsonl" else asked
    return Choice(metric=options.metric, scale=options.scale, asked=told)


def _known(file: ScoreFile, asked: int | None) -> Reading:
    answered = file.answered
    if file.answers is not None and asked is not None and answered is not None:
        lost = asked - answered
        if lost > 0.01 * asked:
            raise LostError(f"{file.source}: {lost} of {asked} questions were not answered")
    if file.unusable is not None:
        raise LostError(file.unusable)
    if file.score is None:
        raise NoScoreError(f"{file.source}: no question was answered")
    return Reading(
        score=file.score,
        correct=file.correct,
        answered=answered,
        asked=file.asked,
        answers=file.answers,
        accept_length=file.accept_length,
        format=file.format,
    )


def _chosen(source: Source, options: CommandOptions, asked: int | None) -> Reading:
    if options.score_regex is not None:
        return _by_regex(source, options, asked)
    assert options.score_key is not None
    document = _last_object(source)
    value: Any = document
    for part in _parts(options.score_key, document):
        found = _step(value, part)
        if found is None:
            known = ", ".join(map(str, value)) if isinstance(value, dict) else "no keys"
            raise source.error(
                f"no score: --score-key {options.score_key} ends at {part!r}; there are {known}"
            )
        value = found[0]
    line = source.line_of(f'"{options.score_key.rpartition(".")[2]}"')
    score = fraction(value, source, line, _choice(options, "", asked), options.score_key)
    return _counted(score, None, asked)


def _parts(key: str, document: dict[str, Any]) -> list[str]:
    # A key may itself hold a point, as lm-eval's names do.
    return [key] if key in document else key.split(".")


def _step(value: Any, part: str) -> tuple[Any] | None:
    if isinstance(value, dict) and part in value:
        return (value[part],)
    if isinstance(value, list) and re.fullmatch(r"-?\d+", part):
        try:
            return (value[int(part)],)
        except IndexError:
            return None
    return None


def _last_object(source: Source) -> dict[str, Any]:
    """The whole text as a JSON object, or the last line that is one."""
    for text in (source.text, *reversed(source.text.splitlines())):
        if not text.lstrip().startswith("{"):
            continue
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            return document
    raise source.error("no score: neither the whole nor a line of it is a JSON object", 1)


def _by_regex(source: Source, options: CommandOptions, asked: int | None) -> Reading:
    assert options.score_regex is not None
    pattern = re.compile(options.score_regex, re.MULTILINE)
    matches = list(pattern.finditer(source.text))
    if not matches:
        raise source.error(f"no score: nothing fits {options.score_regex!r}")
    groups = [match.groupdict() or {"score": match[1]} for match in matches]
    if any(found != groups[0] for found in groups):
        line = source.text.count("\n", 0, matches[1].start()) + 1
        raise source.error(
            f"two scores: {options.score_regex!r} fits {len(matches)} times, with different "
            "numbers; make it fit one",
            line,
        )
    found, line = groups[0], source.text.count("\n", 0, matches[0].start()) + 1
    total = whole(_number(found.get("asked")))
    correct = whole(_number(found.get("correct")))
    if correct is not None and total:
        if correct > total:
            raise source.error(f"{correct} right of {total} asked", line)
        if asked is not None and total < asked:
            raise LostError(f"{source.path}:{line}: {total} of {asked} questions were answered")
        return Reading(correct / total, correct, total, total, format="regular expression")
    number = _number(found.get("score", matches[0][1]))
    choice = _choice(options, "", asked)
    score = fraction(number, source, line, choice, options.score_regex)
    return _counted(score, total, asked)


def _counted(score: float, stated: int | None, asked: int | None) -> Reading:
    total = stated or asked
    correct = None if total is None else round(score * total)
    return Reading(score, correct, total, total)


def _number(text: Any) -> float | None:
    try:
        return optional_number(float(text))
    except (TypeError, ValueError):
        return None


def _problem(
    error: UsageError, source: Source, options: CommandOptions
) -> NoScoreError | LostError:
    words = str(error)
    found = _LOST.search(words)
    if found and int(found[1]) < int(found[2]):
        return LostError(words)
    none_there = _NONE_THERE.match(words.removeprefix(str(source.path)))
    if none_there and (options.chooses_score or not _states_score(source)):
        return NoScoreError(words)
    return UnreadableError(words)


def _states_score(source: Source) -> bool:
    """Whether some line states a score, in a text that was taken for another format."""
    shown, _ = segments(source.text)
    return lm_eval_table.matches(shown) or any(any(statements(segment)) for segment in shown)


def _tail(file: Path) -> bytes:
    with file.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(stream.tell() - _TAIL, 0))
        return stream.read()
