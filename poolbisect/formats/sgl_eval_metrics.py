"""sgl-eval's metrics.json; a run cut short is marked `partial`."""

from __future__ import annotations

from typing import Any

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

NAME = "sgl-eval metrics"
_HEADLINES = ("score", "pass@1")


def matches(document: dict[str, Any]) -> bool:
    return isinstance(document.get("aggregate"), dict)


def parse(document: dict[str, Any], source: Source, choice: Choice) -> ScoreFile:
    """Read the headline score, or the metric asked for. UsageError names the file and the line."""
    aggregate: dict[str, Any] = document["aggregate"]
    partial = document.get("partial") is True
    name = choice.metric or next((key for key in _HEADLINES if key in aggregate), None)
    line = source.line_of(f'"{name}"' if name else '"aggregate"')
    if name is None or name not in aggregate:
        known = ", ".join(map(str, aggregate)) or "none"
        raise source.error(f"no score: no {name or 'score'} in aggregate, which has {known}", line)
    score = fraction(aggregate[name], source, line, choice, name)
    repeats = whole(document.get("n_repeats")) or 1
    asked, answered = _counts(document, repeats)
    if choice.asked is not None:
        asked = choice.asked
    if not partial:
        check_counts(source, asked, answered, source.line_of('"completed_samples"'))
        check_whole(source, score, asked and asked * repeats, 6, line)
    return ScoreFile(
        source=str(source.path),
        format=NAME,
        score=score,
        asked=asked,
        answered=answered,
        partial=partial,
        facts=_facts(document, name, repeats),
        notes=(f"the score is a mean over {repeats} repeats",) if repeats > 1 else (),
    )


def _counts(document: dict[str, Any], repeats: int) -> tuple[int | None, int | None]:
    """Questions asked and answered; a question counts as answered if all its repeats are."""
    planned = whole(document.get("planned_examples"))
    ran = whole(document.get("num_examples"))
    asked = ran if planned is None else planned
    completed = whole(document.get("completed_samples"))
    answered = ran if completed is None else completed // repeats
    return asked, answered


def _facts(document: dict[str, Any], metric: str, repeats: int) -> dict[str, Fact]:
    gen = document.get("gen")
    gen = gen if isinstance(gen, dict) else {}
    version = document.get("sgl_eval_version")
    return facts_of(
        [
            ("task", document.get("name")),
            ("metric", metric),
            ("model", document.get("model")),
            ("repeats", repeats),
            ("sampling", sampling_fact(gen.get("temperature"))),
            ("max_new_tokens", gen.get("max_tokens")),
            ("harness_version", f"sgl-eval {version}" if version else None),
        ]
    )
