"""Find out which format a file is in, and read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.formats import (
    lm_eval_results,
    lm_eval_samples,
    lm_eval_table,
    own_answers,
    own_run,
    printed,
    sgl_eval_metrics,
    sgl_eval_samples,
    sglang_metrics,
)
from poolbisect.formats.json_text import json_lines, json_object
from poolbisect.formats.score_file import Choice, ScoreFile, Source
from poolbisect.formats.source_file import read_source, source_of
from poolbisect.formats.terminal_text import segments

_Object = dict[str, Any]
# In the order in which they are tried; a new format is a new file and one line here.
_OBJECTS: tuple[
    tuple[Callable[[_Object], bool], Callable[[_Object, Source, Choice], ScoreFile]], ...
] = (
    (own_run.matches, own_run.parse),
    (lm_eval_results.matches, lm_eval_results.parse),
    (sgl_eval_metrics.matches, sgl_eval_metrics.parse),
    (sglang_metrics.matches, sglang_metrics.parse),
)
_LINES: tuple[
    tuple[
        Callable[[_Object], bool],
        Callable[[list[tuple[int, _Object]], Source, Choice], ScoreFile],
    ],
    ...,
] = (
    (lm_eval_samples.matches, lm_eval_samples.parse),
    (sgl_eval_samples.matches, sgl_eval_samples.parse),
    (own_answers.matches, own_answers.parse),
)
KNOWN = (
    "a run of poolbisect, per-question JSONL (id, correct), lm-eval's results, samples or table, "
    "sgl-eval's metrics.json or samples, and what SGLang's evals print"
)


def read_score(path: Path, choice: Choice | None = None) -> ScoreFile:
    """Read a score file, or the folder of a run. UsageError names the file and the line."""
    choice = choice or Choice()
    if path.is_dir():
        for name in ("result.json", "metrics.json"):
            if (path / name).is_file():
                return read_score(path / name, choice)
        raise UsageError(f"{path}: holds neither result.json nor metrics.json; name a file")
    return parse_score(read_source(path), choice)


def parse_bytes(data: bytes, name: str, choice: Choice | None = None) -> ScoreFile:
    """Read a score from bytes; `name` stands for the file in messages, its suffix is a hint."""
    return parse_score(source_of(Path(name), data), choice or Choice())


def parse_score(source: Source, choice: Choice) -> ScoreFile:
    """Read a score from text, in whatever format it is."""
    start = source.text.lstrip()
    if not start:
        raise source.error("no score: the file is empty", 1)
    if source.path.suffix == ".jsonl" or _starts_with_lines(start):
        return _parse_lines(source, choice)
    if source.path.suffix == ".json" or _starts_with_object(start):
        return _parse_object(json_object(source), source, choice)
    shown, bars = segments(source.text)
    if lm_eval_table.matches(shown):
        return lm_eval_table.parse(shown, source, choice)
    return printed.parse(shown, bars, source, choice)


def _starts_with_lines(start: str) -> bool:
    """Whether the text is one JSON object a line."""
    first, _, rest = start.partition("\n")
    first = first.strip()
    if not (first.startswith('{"') and first.endswith("}")):
        return False
    keys = ('"id"', '"doc_id"', '"symbolic_correct"')
    return rest.lstrip().startswith("{") or any(key in first for key in keys)


def _starts_with_object(start: str) -> bool:
    """Whether the text is one JSON object, and not a log whose first line is one.

    A Python dict has quotes that JSON does not: it is printed output.
    """
    first, _, rest = start.partition("\n")
    one_of_many = first.rstrip().endswith("}") and rest.strip()
    return start[0] == "{" and start[1:].lstrip()[:1] in ('"', "}") and not one_of_many


def _parse_object(document: _Object, source: Source, choice: Choice) -> ScoreFile:
    for matches, parse in _OBJECTS:
        if matches(document):
            return parse(document, source, choice)
    raise source.error(f"no score: not a format that is known ({KNOWN})", 1)


def _parse_lines(source: Source, choice: Choice) -> ScoreFile:
    lines = json_lines(source)
    for matches, parse in _LINES:
        if matches(lines[0][1]):
            return parse(lines, source, choice)
    raise source.error(f"no score: not a format that is known ({KNOWN})", lines[0][0])
