"""What SGLang's evals print, out of a whole log: one score, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.formats import printed_lines
from poolbisect.formats.printed_lines import Counts, Statement
from poolbisect.formats.score_file import (
    Choice,
    ScoreFile,
    Source,
    check_counts,
    check_whole,
    facts_of,
    fraction,
    is_whole,
    whole,
)
from poolbisect.formats.terminal_text import Bar, Segment

NAME = "printed output"


@dataclass(frozen=True, slots=True)
class _Log:
    """Statements by attempt (None: not numbered), and what else the log says."""

    attempts: dict[int | None, list[Statement]]
    counts: list[Counts]
    lengths: list[tuple[int, float]]


def parse(segments: list[Segment], bars: list[Bar], source: Source, choice: Choice) -> ScoreFile:
    """Read the one score of a log. UsageError names the file and the line at fault.

    Statements of one score in several forms must agree to the digits printed. A second score
    needs an attempt number, and then the user chooses.
    """
    log = _read(segments)
    found = _attempt(log, source, choice)
    stated = _one_score(found, source, choice)
    score = _scaled(stated, found, source, choice)
    places = stated.places + (2 if stated.percent or choice.scale == 100 or stated.value > 1 else 0)
    partial = any(count.partial for count in log.counts)
    asked, answered, line, notes = _counts(log, bars, stated, source, choice, score, places)
    if not partial:
        check_counts(source, asked, answered, line)
        check_whole(source, score, asked, places, stated.line)
    labels = next((s.labels for s in found if s.labels), {})
    lengths = [length for line, length in log.lengths if line >= stated.line] or [
        length for _, length in log.lengths
    ]
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=score,
        asked=asked,
        answered=answered,
        accept_length=lengths[0] if lengths else None,
        partial=partial,
        facts=facts_of([("task", labels.get("eval")), ("model", labels.get("model"))]),
        notes=notes,
    )


def _read(segments: list[Segment]) -> _Log:
    attempts: dict[int | None, list[Statement]] = {}
    counts: list[Counts] = []
    lengths: list[tuple[int, float]] = []
    current: int | None = None
    for segment in segments:
        announced = printed_lines.attempt(segment)
        current = current if announced is None else announced
        for statement in printed_lines.statements(segment):
            labelled = whole(statement.labels.get("attempt"))
            attempts.setdefault(current if labelled is None else labelled, []).append(statement)
        count = printed_lines.counts(segment)
        if count is not None:
            counts.append(count)
        length = printed_lines.accept_length(segment)
        if length is not None:
            lengths.append((segment.line, length))
    return _Log(attempts, counts, lengths)


def _attempt(log: _Log, source: Source, choice: Choice) -> list[Statement]:
    """The statements of the attempt to read."""
    if not log.attempts:
        raise source.error(
            "no score: no line up to here states one", source.text.rstrip().count("\n") + 1
        )
    if choice.attempt is not None:
        if choice.attempt not in log.attempts:
            known = ", ".join(str(n) for n in log.attempts if n is not None) or "none is numbered"
            raise source.error(f"no score of attempt {choice.attempt}; attempts: {known}")
        return log.attempts[choice.attempt]
    if len(log.attempts) == 1:
        return next(iter(log.attempts.values()))
    shown = ", ".join(
        f"{'unnumbered' if number is None else number}: {found[0].value:g} (line {found[0].line})"
        for number, found in log.attempts.items()
    )
    second = list(log.attempts.values())[1][0].line
    raise source.error(
        f"several attempts ({shown}); choose one with --attempt, since the best of several says "
        "little",
        second,
    )


def _one_score(found: list[Statement], source: Source, choice: Choice) -> Statement:
    """The most exact of statements that say the same."""
    if choice.metric is not None:
        named = [s for s in found if choice.metric in s.kind]
        if not named:
            known = ", ".join(dict.fromkeys(s.kind for s in found))
            raise source.error(f"no score called {choice.metric}; there are {known}")
        found = named
    first: dict[str, Statement] = {}
    for statement in found:
        earlier = first.setdefault(statement.kind, statement)
        repeated = "dict" in statement.kind and earlier.value == statement.value
        if earlier is not statement and not repeated:
            raise source.error(
                f"a second score, {statement.value:g} after {earlier.value:g} on line "
                f"{earlier.line}, without an attempt number",
                statement.line,
            )
    best = max(first.values(), key=_places)
    for statement in first.values():
        if statement is not best and not _agree(statement, best):
            raise source.error(
                f"two scores that disagree: {best.kind} {best.value:g} on line {best.line} and "
                f"{statement.kind} {statement.value:g}; choose one with --metric",
                statement.line,
            )
    return best


def _places(statement: Statement) -> int:
    """Places after the point on a scale of 0 to 1."""
    return statement.places + (2 if statement.percent or statement.value > 1 else 0)


def _agree(one: Statement, other: Statement) -> bool:
    """Whether both may be the same score, each rounded to its places and on its scale."""
    tolerance = 0.5 * 10.0 ** -min(_places(one), _places(other)) * 1.01 + 1e-12
    readings = [
        (s.value / 100,) if s.percent else (s.value, s.value / 100) if s.value > 1 else (s.value,)
        for s in (one, other)
    ]
    return any(abs(a - b) <= tolerance for a in readings[0] for b in readings[1])


def _scaled(stated: Statement, found: list[Statement], source: Source, choice: Choice) -> float:
    """The score from 0 to 1. A number above 1 needs a percent sign, `--scale`, or a statement of
    the same score on a scale of 0 to 1 beside it."""
    if stated.percent:
        return fraction(stated.value, source, stated.line, Choice(scale=100), stated.kind)
    beside = any(s.value <= 1 and not s.percent and _agree(s, stated) for s in found)
    if stated.value > 1 and choice.scale is None and beside:
        return fraction(stated.value, source, stated.line, Choice(scale=100), stated.kind)
    return fraction(stated.value, source, stated.line, choice, stated.kind)


def _counts(
    log: _Log,
    bars: list[Bar],
    stated: Statement,
    source: Source,
    choice: Choice,
    score: float,
    places: int,
) -> tuple[int | None, int | None, int, tuple[str, ...]]:
    """Questions asked and answered, the line that says so, and a note.

    As told, as printed, or else by the last progress bar before the score.
    """
    asked = next((c for c in reversed(log.counts) if c.asked is not None), None)
    answered = next((c for c in reversed(log.counts) if c.answered is not None), None)
    before = [bar for bar in bars if bar.line <= stated.line]
    bar = before[-1] if before else None
    line = answered.line if answered else stated.line
    if choice.asked is not None or asked is not None:
        total = choice.asked
        if total is None and asked is not None:
            total = asked.asked
        if answered is not None:
            return total, answered.answered, line, ()
        if bar is not None and bar.total == total:
            return total, bar.done, bar.line, ()
        return total, total, line, ()
    if answered is not None:
        return answered.answered, answered.answered, line, ()
    # A bar that cannot have counted this score's questions was that of something else.
    if bar is not None and (bar.done != bar.total or is_whole(score, bar.total, places)):
        note = f"{source.path}: questions counted by the progress bar on line {bar.line}"
        return bar.total, bar.done, bar.line, (note,)
    return None, None, line, ()
