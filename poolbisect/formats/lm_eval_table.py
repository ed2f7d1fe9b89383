"""The table lm-eval prints: Tasks, Version, Filter, n-shot, Metric, Value, Stderr.

A row without a task or version belongs to the task above it. The line before the table may say
the model, the limit and the shots.
"""

from __future__ import annotations

import re

from poolbisect.formats.lm_eval_candidates import Candidate, choose
from poolbisect.formats.score_file import (
    Choice,
    ScoreFile,
    Source,
    check_whole,
    facts_of,
    fraction,
)
from poolbisect.formats.terminal_text import Segment

NAME = "lm-eval table"
_SETTINGS = re.compile(
    r"^(?P<model>\S.{0,400}?), gen_kwargs: .{0,200}?, limit: (?P<limit>[\d.]{1,12}|None), "
    r"num_fewshot: (?P<shots>\d{1,6}|None)"
)
_NEEDED = {"Filter", "Metric", "Value"}


def matches(segments: list[Segment]) -> bool:
    return any(_header(segment.text) for segment in segments)


def parse(segments: list[Segment], source: Source, choice: Choice) -> ScoreFile:
    """Read one row. UsageError names the line, and the rows to choose from."""
    found: list[Candidate] = []
    shots: dict[str, str] = {}
    facts: list[tuple[str, object]] = []
    asked = choice.asked
    header: list[str] | None = None
    task = ""
    for segment in segments:
        settings = _SETTINGS.match(segment.text.strip())
        if settings:
            facts = [("model", settings["model"]), ("shots", _int(settings["shots"]))]
            limit = float(settings["limit"]) if _is_number(settings["limit"]) else 0.0
            asked = asked or (int(limit) if limit >= 1 else None)
        named = _header(segment.text)
        if named:
            header, task = named, ""
            continue
        if header is None or not segment.text.strip().startswith("|"):
            continue
        cells = dict(zip(header, _cells(segment.text), strict=False))
        if set("".join(cells.values())) <= set("-: "):
            continue
        task = cells.get("Tasks", "").lstrip(" -") or task
        if not _is_number(cells.get("Value", "")):
            raise source.error(f"no score in this row of {task or 'the table'}", segment.line)
        found.append(
            Candidate(task, cells["Metric"], cells["Filter"], float(cells["Value"]), segment.line)
        )
        shots[task] = cells.get("n-shot", "")
    chosen = choose(found, source, choice)
    score = fraction(chosen.value, source, chosen.line, choice, chosen.name)
    check_whole(source, score, asked, 4, chosen.line)
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=score,
        asked=asked,
        answered=asked,
        facts=facts_of(
            [
                *facts,
                ("task", chosen.task),
                ("metric", chosen.name.partition(":")[2]),
                ("shots", _int(shots.get(chosen.task, ""))),
            ]
        ),
    )


def _header(text: str) -> list[str] | None:
    if "Metric" not in text or not text.strip().startswith("|"):
        return None
    cells = ["Tasks" if cell == "Groups" else cell for cell in _cells(text)]
    if not _NEEDED.issubset(cells):
        return None
    # The columns of arrow and of ± have no heading.
    return [cell or f"column {place}" for place, cell in enumerate(cells)]


def _cells(text: str) -> list[str]:
    return [cell.strip().replace("\\_", "_") for cell in text.strip().strip("|").split("|")]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,9}(\.\d{0,20})?", text) is not None


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else None
