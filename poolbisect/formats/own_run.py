"""Our own run: its result.json, with the answers that lie beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poolbisect.formats import own_answers
from poolbisect.formats.json_text import json_lines
from poolbisect.formats.score_file import (
    Choice,
    Fact,
    QuestionId,
    ScoreFile,
    Source,
    facts_of,
    fraction,
    optional_number,
    sampling_fact,
    whole,
)
from poolbisect.formats.source_file import read_source

NAME = "poolbisect run"
_SCHEMA = "poolbisect.run/"


def matches(document: dict[str, Any]) -> bool:
    schema = document.get("schema")
    return isinstance(schema, str) and schema.startswith(_SCHEMA)


def answers_file(folder: Path, subject: str) -> Path:
    """Where a run keeps the answers of a subject."""
    return folder / f"{subject.replace(':', '-').replace('/', '-')}.jsonl"


def parse(document: dict[str, Any], source: Source, choice: Choice) -> ScoreFile:
    """Read one subject of a run. UsageError names the file, and the subjects to choose from."""
    if document["schema"] != _SCHEMA + "1":
        raise source.error(
            f"schema {str(document['schema'])[:40]} is not {_SCHEMA}1; "
            "use the version of poolbisect that wrote it",
            source.line_of('"schema"'),
        )
    result = _subject(document, source, choice)
    asked, answered = whole(result.get("asked")), whole(result.get("answered"))
    correct = whole(result.get("correct"))
    if asked is None or answered is None or correct is None or not correct <= answered <= asked:
        raise source.error(
            f"subject {result['subject']}: asked, answered and correct are not counts that fit",
            source.line_of('"asked"'),
        )
    accuracy = result.get("accuracy")
    line = source.line_of('"accuracy"')
    score = None if accuracy is None else fraction(accuracy, source, line, Choice(), "accuracy")
    if score is not None and abs(score * answered - correct) > 1e-6 * max(1, answered):
        raise source.error(f"accuracy {score:g} is not {correct} of {answered}", line)
    if score is None and answered:
        raise source.error(f"no accuracy, though {answered} questions were answered", line)
    ended = str(result.get("ended", "measured"))
    partial = ended == "partial"
    answers, prompts, texts, notes = _answers(result, source, answered, correct)
    return ScoreFile(
        source=f"{source.path.parent} ({result['subject']})",
        format=NAME,
        score=score,
        asked=asked,
        answered=answered,
        answers=answers,
        accept_length=optional_number(result.get("accept_length")),
        partial=partial,
        ended="measured" if partial else ended,
        facts=run_facts(document, result),
        prompts=prompts,
        texts=texts,
        notes=notes,
        scenario=str(document.get("scenario") or "") or None,
    )


def _subject(document: dict[str, Any], source: Source, choice: Choice) -> dict[str, Any]:
    results = document.get("results")
    if not isinstance(results, list) or not all(
        isinstance(result, dict) and isinstance(result.get("subject"), str) for result in results
    ):
        raise source.error("results is not a list of subjects", source.line_of('"results"'))
    if not results:
        raise source.error("no score: the run has no subject", source.line_of('"results"'))
    names = ", ".join(result["subject"] for result in results)
    wanted = choice.subject
    if wanted is None and choice.reference:
        wanted = str(document.get("reference"))
    if wanted is None:
        if len(results) > 1:
            raise source.error(f"has several subjects ({names}); choose one with --subject")
        return dict(results[0])
    for result in results:
        if result["subject"] == wanted:
            return dict(result)
    raise source.error(f"has no subject {wanted}; there are {names}")


def _answers(
    result: dict[str, Any], source: Source, answered: int, correct: int
) -> tuple[
    dict[QuestionId, bool] | None, dict[QuestionId, str], dict[QuestionId, str], tuple[str, ...]
]:
    path = answers_file(source.path.parent, result["subject"])
    if not path.is_file():
        return None, {}, {}, (f"{path} is missing, so questions cannot be matched",)
    beside = read_source(path)
    read = own_answers.parse(json_lines(beside), beside, Choice())
    if read.answered != answered or read.correct != correct:
        raise beside.error(
            f"holds {read.correct} right of {read.answered} answers, but {source.path} says "
            f"{correct} of {answered}; the file is half-written or from another run"
        )
    return dict(read.answers or {}), dict(read.prompts), dict(read.texts), ()


def run_facts(document: dict[str, Any], result: dict[str, Any]) -> dict[str, Fact]:
    """What must agree before two runs are compared, in the words baselines use."""
    configuration = _table(document, "configuration")
    workload, engine = _table(configuration, "workload"), _table(configuration, "engine")
    memory, provenance = _table(configuration, "memory"), _table(result, "provenance")
    mode = "plain"
    if engine.get("speculative-algorithm"):
        algorithm = str(engine["speculative-algorithm"]).lower()
        mode = f"{algorithm}-{engine.get('speculative-num-steps', 0)}"
    model, device = workload.get("model"), provenance.get("device")
    weights = provenance.get("model_sha256")
    return facts_of(
        [
            ("task", workload.get("task")),
            ("model", f"{model}-miniature" if model else None),
            ("weights", weights[:12] if isinstance(weights, str) else None),
            ("shots", workload.get("shots")),
            ("sampling", sampling_fact(workload.get("temperature"))),
            ("max_new_tokens", workload.get("max-new-tokens")),
            ("hardware", f"miniature-{device}" if device else None),
            ("engine_mode", f"{mode} dp{engine.get('dp-size', 1)}" if engine else None),
            ("harness_version", provenance.get("harness_version")),
            ("padded_rows", memory.get("padded-rows")),
            ("behind_hidden_states", memory.get("behind-hidden-states")),
        ]
    )


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}
