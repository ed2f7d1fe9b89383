"""lm-eval's samples JSONL (`--log_samples`): one line per question and filter.

A line has `doc_id`, `filter`, the names of its metrics in `metrics` and their values beside them.
"""

from __future__ import annotations

from typing import Any

from poolbisect.formats.lm_eval_candidates import Candidate, choose
from poolbisect.formats.score_file import (
    Choice,
    QuestionId,
    ScoreFile,
    Source,
    check_counts,
    facts_of,
    question_id,
    right_or_wrong,
)

NAME = "lm-eval samples"
# Metrics of a question that are right or wrong, for versions that do not name theirs.
_KNOWN = ("exact_match", "acc", "acc_norm", "pass@1", "pass_at_1", "math_verify")
Lines = list[tuple[int, dict[str, Any]]]


def matches(first: dict[str, Any]) -> bool:
    return "doc_id" in first and "correct" not in first


def parse(lines: Lines, source: Source, choice: Choice) -> ScoreFile:
    """Read one metric of one filter. UsageError names the line, and the filters to choose from."""
    tables: dict[tuple[str, str], dict[QuestionId, tuple[bool, int]]] = {}
    documents: dict[QuestionId, str] = {}
    texts: dict[tuple[str, QuestionId], str] = {}
    for number, line in lines:
        if "doc_id" not in line:
            raise source.error("no doc_id", number)
        question = question_id(line["doc_id"], source, number, "doc_id")
        name = str(line.get("filter", ""))
        metrics = _metrics(line, choice, name)
        if not metrics:
            raise source.error("no score: none of this line's metrics is known", number)
        for metric in metrics:
            table = tables.setdefault((metric, name), {})
            if question in table:
                raise source.error(
                    f"question {question} has a score on line {table[question][1]} already, and "
                    "neither has an attempt number",
                    number,
                )
            table[question] = (right_or_wrong(line[metric], source, number, metric), number)
        documents[question] = str(line.get("doc_hash") or line.get("doc") or "")
        texts[name, question] = _text(line)
    chosen = _choose(tables, source, choice)
    answers = {question: right for question, (right, _) in tables[chosen].items()}
    missing = next((q for q in documents if q not in answers), None)
    if missing is not None:
        check_counts(source, len(documents), len(answers), lines[-1][0])
    if choice.asked is not None:
        check_counts(source, choice.asked, len(answers), lines[-1][0])
    metric, name = chosen
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=sum(answers.values()) / len(answers),
        asked=len(answers),
        answered=len(answers),
        answers=answers,
        facts=facts_of([("metric", f"{metric},{name}" if name else metric)]),
        prompts={question: text for question, text in documents.items() if text},
        texts={q: texts[name, q] for q in answers if texts.get((name, q))},
    )


def _choose(
    tables: dict[tuple[str, str], dict[QuestionId, tuple[bool, int]]],
    source: Source,
    choice: Choice,
) -> tuple[str, str]:
    """The metric and filter to read; tables that agree on every question are one."""
    found = []
    for (metric, name), table in tables.items():
        rights = [right for right, _ in table.values()]
        first_line = next(iter(table.values()))[1]
        found.append(Candidate("", metric, name, sum(rights) / len(rights), first_line))
    chosen = choose(found, source, choice)
    wanted = (chosen.metric, chosen.filter)
    same = {question: right for question, (right, _) in tables[wanted].items()}
    for candidate in found:
        other = tables[candidate.metric, candidate.filter]
        if choice.metric is None and same != {q: right for q, (right, _) in other.items()}:
            raise source.error(
                f"{chosen.name} and {candidate.name} disagree on questions; "
                "choose one with --metric",
                candidate.line,
            )
    return wanted


def _metrics(line: dict[str, Any], choice: Choice, name: str) -> list[str]:
    named = line.get("metrics")
    names = named if isinstance(named, list) else list(_KNOWN)
    names = [metric for metric in names if isinstance(metric, str) and metric in line]
    if choice.metric is None:
        return names
    wanted = [m for m in names if Candidate("", m, name, 0, 0).answers_to(choice.metric)]
    return wanted or names


def _text(line: dict[str, Any]) -> str:
    """The answer as the filter left it: a text inside up to a few lists."""
    value = line.get("filtered_resps", line.get("resps"))
    for _ in range(4):
        if isinstance(value, list) and value:
            value = value[0]
    return value if isinstance(value, str) else ""
