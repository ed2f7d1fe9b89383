"""lm-eval's results JSON (results_<date>.json of EleutherAI's lm-evaluation-harness).

`results` maps a task to `metric,filter` keys; `n-samples`, `n-shot`, `configs` and `config` say
how it was run.
"""

from __future__ import annotations

from typing import Any

from poolbisect.formats.lm_eval_candidates import NOT_SCORES, Candidate, choose
from poolbisect.formats.score_file import (
    Choice,
    Fact,
    ScoreFile,
    Source,
    check_counts,
    check_whole,
    facts_of,
    fraction,
    sampling_fact,
    whole,
)

NAME = "lm-eval results"


def matches(document: dict[str, Any]) -> bool:
    results = document.get("results")
    return isinstance(results, dict) and any(isinstance(v, dict) for v in results.values())


def parse(document: dict[str, Any], source: Source, choice: Choice) -> ScoreFile:
    """Read one score. UsageError names the file, the line and the scores to choose from."""
    chosen = choose(_candidates(document, source), source, choice)
    score = fraction(chosen.value, source, chosen.line, choice, chosen.name)
    samples = _table(_table(document, "n-samples"), chosen.task)
    asked = whole(samples.get("effective"))
    if asked is None:
        asked = whole(_table(_table(document, "results"), chosen.task).get("sample_len"))
    if choice.asked is not None:
        check_counts(source, choice.asked, asked, source.line_of('"effective"'))
        asked = choice.asked
    check_whole(source, score, asked, 6, chosen.line)
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=score,
        asked=asked,
        answered=asked,
        facts=_facts(document, chosen),
    )


def _candidates(document: dict[str, Any], source: Source) -> list[Candidate]:
    found = []
    for task, metrics in document["results"].items():
        for key, value in metrics.items() if isinstance(metrics, dict) else ():
            metric, _, name = key.partition(",")
            if metric in NOT_SCORES or metric.endswith("_stderr") or isinstance(value, str):
                continue
            line = source.line_of(f'"{key}"')
            found.append(Candidate(task, metric, name, value, line))
    return found


def _facts(document: dict[str, Any], chosen: Candidate) -> dict[str, Fact]:
    config = _table(document, "config")
    task = _table(_table(document, "configs"), chosen.task)
    kwargs = _table(task, "generation_kwargs")
    temperature = kwargs.get("temperature", 0 if kwargs.get("do_sample") is False else None)
    version = document.get("lm_eval_version")
    return facts_of(
        [
            ("task", chosen.task),
            ("metric", chosen.name.partition(":")[2]),
            ("model", document.get("model_name") or config.get("model_args")),
            ("shots", _table(document, "n-shot").get(chosen.task)),
            ("sampling", sampling_fact(temperature)),
            ("task_version", _table(document, "versions").get(chosen.task)),
            ("harness_version", f"lm-eval {version}" if version else None),
        ]
    )


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}
