"""Our own per-question JSONL and runs; sgl-eval's metrics and samples; SGLang's JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from poolbisect.errors import UsageError
from poolbisect.formats import Choice, parse_bytes


def lines(*objects: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, objects)).encode()


def test_a_line_needs_only_id_and_correct() -> None:
    score = parse_bytes(lines({"id": 1, "correct": True}, {"id": "b", "correct": False}), "a.jsonl")
    assert score.answers == {1: True, "b": False}
    assert (score.score, score.asked, score.unusable) == (0.5, 2, None)


def test_questions_lost_to_a_dead_connection_are_no_wrong_answers() -> None:
    """40 of 200 lost: excluded from the score, and the run counts for nothing."""
    answered = [{"id": n, "correct": n < 124} for n in range(160)]
    lost = [{"id": n, "correct": None} for n in range(160, 200)]
    score = parse_bytes(lines(*answered, *lost), "a.jsonl")
    assert score.score == 0.775
    assert (score.asked, score.answered, score.correct) == (200, 160, 124)
    assert "lost 40 of 200" in str(score.unusable)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (lines({"id": 1, "correct": True}, {"id": 1, "correct": False}), "a.jsonl:2: question 1"),
        (lines({"id": 1, "correct": True}, {"id": 2}), "a.jsonl:2: no correct"),
        (lines({"id": 1, "correct": True}, {"correct": True}), "a.jsonl:2: no id"),
        (lines({"id": 1, "correct": "yes"}), "a.jsonl:1: correct is 'yes'"),
        (lines({"id": 1, "correct": True, "outcome": "wrong"}), "a.jsonl:1: correct and outcome"),
        (lines({"id": 1, "correct": True}) + b'\n{"id": 2, "cor', "a.jsonl:2: the JSON breaks off"),
        (b'{"id": 1, "correct": true}\n[]\n', "a.jsonl:2: holds a JSON list"),
        (b"", "a.jsonl:1: no score"),
        (b'{"name": 1}', "a.jsonl:1: no score: not a format"),
    ],
)
def test_a_line_at_fault_is_named(content: bytes, named: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_bytes(content, "a.jsonl")
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_numbered_attempts_are_chosen() -> None:
    content = lines(*({"id": n, "correct": n < k, "attempt": k} for k in (1, 2) for n in range(4)))
    with pytest.raises(UsageError, match="attempts 1, 2; choose one"):
        parse_bytes(content, "a.jsonl")
    assert parse_bytes(content, "a.jsonl", Choice(attempt=2)).correct == 2


METRICS = {
    "name": "gsm8k",
    "num_examples": 200,
    "n_repeats": 1,
    "aggregate": {"score": 0.775, "no_answer": 0.0},
    "gen": {"temperature": 0.0, "max_tokens": 512},
    "model": "m",
    "sgl_eval_version": "0.2",
}


def metrics(**more: Any) -> bytes:
    return json.dumps(METRICS | more, indent=2).encode()


def test_sgl_evals_metrics() -> None:
    score = parse_bytes(metrics(), "metrics.json")
    assert (score.score, score.asked, score.correct) == (0.775, 200, 155)
    assert score.facts["sampling"] == "greedy"
    assert score.unusable is None


def test_sgl_evals_partial_run_is_marked() -> None:
    more = {"partial": True, "planned_examples": 1319, "completed_samples": 200}
    score = parse_bytes(metrics(**more), "metrics.json")
    assert score.partial
    assert "200 of 1319" in str(score.unusable)


def test_fewer_answers_than_questions_without_the_mark_are_an_error() -> None:
    with pytest.raises(UsageError, match=r"metrics.json:\d+: 160 of 200 questions"):
        parse_bytes(metrics(completed_samples=160), "metrics.json")


@pytest.mark.parametrize(
    ("aggregate", "named"),
    [({}, "no score"), ({"score": 77.5}, "above 1"), ({"score": None}, "not a score")],
)
def test_sgl_evals_metrics_at_fault(aggregate: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=rf"metrics.json:\d+: .*{named}"):
        parse_bytes(metrics(aggregate=aggregate), "metrics.json")


def test_sgl_evals_samples_are_matched_by_problem() -> None:
    content = lines(
        *(
            {"generation": f"= {n}", "problem": f"{n}+0?", "symbolic_correct": n != 2}
            for n in (2, 0, 1)
        )
    )
    score = parse_bytes(content, "output-rs0.jsonl")
    assert score.answers == {"2+0?": False, "0+0?": True, "1+0?": True}
    with pytest.raises(UsageError, match=r"output-rs0.jsonl:4: .*line 1 already"):
        parse_bytes(content + b"\n" + content.split(b"\n")[0], "output-rs0.jsonl")


def test_sglangs_own_json() -> None:
    score = parse_bytes(b'{"chars": 300, "score": 0.775}', "gsm8k_m.json", Choice(asked=200))
    assert score.correct == 155
    with pytest.raises(UsageError, match="half-written"):
        parse_bytes(b'{\n "score": 0.775,', "gsm8k_m.json")
    with pytest.raises(UsageError, match="160 of 200"):
        parse_bytes(b'{"score": 0.775, "asked": 200, "answered": 160}', "x.json")
