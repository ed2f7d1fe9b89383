"""Our own per-question JSONL: a line needs `id` and `correct`, anything else may be there.

`correct` null, or `outcome` "unanswered", is a question lost to the infrastructure. `attempt`
numbers the attempts where a question was asked more than once.
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
    whole,
)

NAME = "per-question JSONL"
Lines = list[tuple[int, dict[str, Any]]]


def matches(first: dict[str, Any]) -> bool:
    return "correct" in first or ("id" in first and "outcome" in first)


def parse(lines: Lines, source: Source, choice: Choice) -> ScoreFile:
    """Read the answers of one attempt. UsageError names the file and the line at fault."""
    lines = _one_attempt(lines, source, choice)
    answers: dict[QuestionId, bool] = {}
    prompts: dict[QuestionId, str] = {}
    texts: dict[QuestionId, str] = {}
    lengths: list[float] = []
    seen: dict[QuestionId, int] = {}
    for number, line in lines:
        if "id" not in line:
            raise source.error("no id", number)
        question = question_id(line["id"], source, number)
        if question in seen:
            raise source.error(
                f"question {question} has a score on line {seen[question]} already, and neither "
                "has an attempt number",
                number,
            )
        seen[question] = number
        right = _right(line, source, number)
        if right is not None:
            answers[question] = right
        if isinstance(line.get("prompt"), str):
            prompts[question] = line["prompt"]
        if isinstance(line.get("text"), str):
            texts[question] = line["text"]
        length = line.get("accept_length")
        if isinstance(length, int | float) and not isinstance(length, bool):
            lengths.append(length)
    if choice.asked is not None:
        check_counts(source, choice.asked, len(seen))
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=sum(answers.values()) / len(answers) if answers else None,
        asked=len(seen),
        answered=len(answers),
        answers=answers,
        accept_length=sum(lengths) / len(lengths) if lengths else None,
        prompts=prompts,
        texts=texts,
    )


def _right(line: dict[str, Any], source: Source, number: int) -> bool | None:
    """Whether the answer is right; None for a lost question."""
    outcome = line.get("outcome")
    if outcome == "unanswered" or ("correct" in line and line["correct"] is None):
        return None
    if "correct" not in line:
        raise source.error("no correct", number)
    right = right_or_wrong(line["correct"], source, number, "correct")
    if outcome in ("right", "wrong", "invalid") and right != (outcome == "right"):
        raise source.error(f"correct and outcome disagree ({outcome})", number)
    return right


def _one_attempt(lines: Lines, source: Source, choice: Choice) -> Lines:
    numbered = {whole(line["attempt"]) for _, line in lines if "attempt" in line}
    if choice.attempt is not None and numbered:
        kept = [(n, line) for n, line in lines if whole(line.get("attempt")) == choice.attempt]
        if not kept:
            raise source.error(f"no attempt {choice.attempt}; there are {_listed(numbered)}")
        return kept
    if len(numbered) > 1:
        raise source.error(
            f"holds attempts {_listed(numbered)}; choose one with --attempt, since the best of "
            "several says little"
        )
    return lines


def _listed(numbers: set[int | None]) -> str:
    return ", ".join(sorted(str(number) for number in numbers))
