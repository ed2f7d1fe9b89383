"""sgl-eval's per-sample JSONL (output-rs<repeat>.jsonl), in the order in which answers came.

A line has `problem`, `generation` and `symbolic_correct`. Without an `id` the problem itself says
which question it is.
"""

from __future__ import annotations

from typing import Any

from poolbisect.formats.score_file import (
    Choice,
    QuestionId,
    ScoreFile,
    Source,
    check_counts,
    question_id,
    right_or_wrong,
)

NAME = "sgl-eval samples"
Lines = list[tuple[int, dict[str, Any]]]


def matches(first: dict[str, Any]) -> bool:
    return "symbolic_correct" in first or ("generation" in first and "problem" in first)


def parse(lines: Lines, source: Source, choice: Choice) -> ScoreFile:
    """Read the answers. UsageError names the file and the line at fault."""
    answers: dict[QuestionId, bool] = {}
    prompts: dict[QuestionId, str] = {}
    texts: dict[QuestionId, str] = {}
    seen: dict[QuestionId, int] = {}
    for number, line in lines:
        key = "id" if "id" in line else "problem"
        if key not in line:
            raise source.error("neither id nor problem", number)
        question = question_id(line[key], source, number, key)
        if question in seen:
            raise source.error(
                f"this question has a score on line {seen[question]} already, and neither has "
                "an attempt number",
                number,
            )
        if "symbolic_correct" not in line:
            raise source.error("no score: no symbolic_correct", number)
        seen[question] = number
        answers[question] = right_or_wrong(
            line["symbolic_correct"], source, number, "symbolic_correct"
        )
        prompts[question] = str(line.get("problem", ""))
        texts[question] = str(line.get("generation", ""))
    if choice.asked is not None:
        check_counts(source, choice.asked, len(answers), lines[-1][0])
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=sum(answers.values()) / len(answers),
        asked=len(answers),
        answered=len(answers),
        answers=answers,
        prompts=prompts,
        texts=texts,
    )
