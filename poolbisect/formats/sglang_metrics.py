"""The JSON SGLang's own eval writes beside its HTML: `score` among other numbers."""

from __future__ import annotations

from typing import Any

from poolbisect.formats.score_file import (
    Choice,
    ScoreFile,
    Source,
    check_counts,
    check_whole,
    facts_of,
    fraction,
    optional_number,
    whole,
)

NAME = "SGLang eval JSON"
_SCORES = ("score", "mean_score", "accuracy")
_ASKED = ("asked", "num_questions", "num_examples")
_ANSWERED = ("answered", "num_answered", "num_completed")


def matches(document: dict[str, Any]) -> bool:
    return any(key in document for key in _SCORES)


def parse(document: dict[str, Any], source: Source, choice: Choice) -> ScoreFile:
    """Read the score, or the metric asked for. UsageError names the file and the line."""
    name = choice.metric or next(key for key in _SCORES if key in document)
    line = source.line_of(f'"{name}"')
    if name not in document:
        raise source.error(f"no score: no {name}", line)
    score = fraction(document[name], source, line, choice, name)
    asked = choice.asked or next((whole(document[k]) for k in _ASKED if k in document), None)
    answered = next((whole(document[k]) for k in _ANSWERED if k in document), asked)
    partial = document.get("partial") is True
    if not partial:
        check_counts(source, asked, answered, line)
        check_whole(source, score, asked, 6, line)
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=score,
        asked=asked,
        answered=answered,
        partial=partial,
        accept_length=optional_number(document.get("avg_spec_accept_length")),
        facts=facts_of([("metric", name)]),
    )
