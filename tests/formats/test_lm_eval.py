"""lm-eval's results, samples and table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from poolbisect.errors import UsageError
from poolbisect.formats import Choice, parse_bytes

TABLE = """\
hf (pretrained=m), gen_kwargs: (None), limit: 200.0, num_fewshot: 5, batch_size: 8
|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|
|-----|------:|----------------|-----:|-----------|---|-----:|---|-----:|
|gsm8k|      3|flexible-extract|     5|exact_match|↑  |0.7750|±  |0.0296|
|     |       |strict-match    |     5|exact_match|↑  |0.7200|±  |0.0318|
"""


def results(**metrics: float) -> dict[str, Any]:
    return {
        "results": {"gsm8k": {"alias": "gsm8k", **metrics}},
        "n-samples": {"gsm8k": {"original": 1319, "effective": 200}},
        "n-shot": {"gsm8k": 5},
        "configs": {"gsm8k": {"generation_kwargs": {"do_sample": False, "temperature": 0.0}}},
        "versions": {"gsm8k": 3.0},
        "lm_eval_version": "0.4.9",
        "model_name": "m",
    }


def encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode()


BOTH = {
    "exact_match,strict-match": 0.72,
    "exact_match_stderr,strict-match": 0.03,
    "exact_match,flexible-extract": 0.775,
    "exact_match_stderr,flexible-extract": 0.03,
}


@pytest.mark.parametrize(("data", "name"), [(TABLE, "out.log"), (None, "results.json")])
def test_two_filters_that_disagree_must_be_chosen_from(data: str | None, name: str) -> None:
    content = data.encode() if data else encoded(results(**BOTH))
    with pytest.raises(UsageError) as raised:
        parse_bytes(content, name)
    message = str(raised.value)
    assert message.startswith(f"{name}:")
    for word in ("strict-match = 0.72", "flexible-extract = 0.775", "--metric"):
        assert word in message
    chosen = parse_bytes(content, name, Choice(metric="strict-match"))
    assert (chosen.score, chosen.asked, chosen.correct) == (0.72, 200, 144)
    assert chosen.facts["shots"] == 5
    assert chosen.facts["task"] == "gsm8k"


def test_filters_that_agree_are_one_score() -> None:
    agreeing = results(**{**BOTH, "exact_match,strict-match": 0.775})
    score = parse_bytes(encoded(agreeing), "results.json")
    assert score.correct == 155
    assert score.facts["sampling"] == "greedy"
    assert score.facts["harness_version"] == "lm-eval 0.4.9"


def test_a_score_above_one_names_its_line() -> None:
    content = encoded(results(**{"exact_match,none": 77.5}))
    with pytest.raises(UsageError, match=r"results.json:5: .* 77.5, above 1"):
        parse_bytes(content, "results.json")
    assert parse_bytes(content, "results.json", Choice(scale=100)).score == 0.775


def test_no_metric_is_no_score() -> None:
    with pytest.raises(UsageError, match="no score"):
        parse_bytes(encoded(results()), "results.json")


def sample(doc: int, right: object, name: str = "strict-match", **more: Any) -> str:
    line = {
        "doc_id": doc,
        "filter": name,
        "metrics": ["exact_match"],
        "exact_match": right,
        "doc_hash": f"h{doc}",
        "filtered_resps": [str(doc)],
    }
    return json.dumps(line | more)


def test_samples_are_answers_by_document() -> None:
    lines = [sample(number, float(number % 4 != 0)) for number in range(8)]
    score = parse_bytes("\n".join(lines).encode(), "samples_gsm8k.jsonl")
    assert score.answers == {number: number % 4 != 0 for number in range(8)}
    assert score.score == 0.75
    assert score.texts[3] == "3"


def test_filters_of_samples_are_chosen_from() -> None:
    lines = [sample(n, 1.0) for n in range(4)]
    lines += [sample(n, float(n > 0), "flexible-extract") for n in range(4)]
    content = "\n".join(lines).encode()
    with pytest.raises(UsageError, match=r"strict-match = 1, .*flexible-extract = 0.75"):
        parse_bytes(content, "samples.jsonl")
    chosen = parse_bytes(content, "samples.jsonl", Choice(metric="flexible-extract"))
    assert chosen.correct == 3


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([sample(0, 1.0), sample(0, 0.0)], r"samples.jsonl:2: question 0 has a score on line 1"),
        ([sample(0, 0.5)], r"samples.jsonl:1: exact_match is '0.5', neither right"),
        ([sample(0, 1.0), sample(1, 1.0)[:-9]], r"samples.jsonl:2: the JSON breaks off here"),
    ],
)
def test_samples_at_fault_are_named_by_line(lines: list[str], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        parse_bytes("\n".join(lines).encode(), "samples.jsonl")
