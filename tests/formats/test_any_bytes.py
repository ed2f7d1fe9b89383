"""Whatever is in a file: it is read, or one sentence names the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.errors import UsageError
from poolbisect.formats import Choice, ScoreFile, parse_bytes

NAMES = st.sampled_from(["x.log", "x.json", "x.jsonl"])
WORDS = st.sampled_from(
    [
        "Score: ", "Accuracy: ", "0.776", "77.6", "%", "\n", "\r", "\x1b[A", "[METRIC] a_score=",
        "labels={", "}", "{'score': ", "np.float64(", "100%|##| ", "200/200 ", "[00:01]", "nan",
        "|Tasks|Filter|Metric|Value|\n", "|gsm8k|none|acc|0.5|", '{"id": 1, "correct": true}',
        "Attempt 2", "answered ", "160 of 200", "9" * 30, "1e400", " ", "* score = ",
    ]
)  # fmt: skip
KEYS = st.sampled_from(
    ["id", "correct", "outcome", "attempt", "doc_id", "filter", "metrics", "exact_match",
     "problem", "symbolic_correct", "results", "aggregate", "score", "schema", "partial",
     "n-samples", "asked", "answered", "num_examples", "subject", "accuracy", "doc", "prompt"]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "right", "poolbisect.run/1", "gsm8k", "\ud800", "12"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def check(data: bytes, name: str, choice: Choice) -> None:
    refused: str | None = None
    try:
        score: ScoreFile | None = parse_bytes(data, name, choice)
    except UsageError as error:
        score, refused = None, str(error)
    if score is None:
        assert refused is not None
        assert refused.startswith(name)
        assert "\n" not in refused
    else:
        assert score.score is None or 0 <= score.score <= 1
        assert score.correct is None or 0 <= score.correct <= (score.answered or 0)


CHOICES = st.builds(
    Choice,
    metric=st.none() | st.sampled_from(["score", "none", "exact_match"]),
    scale=st.sampled_from([None, 1, 100]),
    asked=st.none() | st.integers(1, 2000),
    attempt=st.none() | st.integers(0, 3),
)


@given(st.binary(max_size=400), NAMES, CHOICES)
@settings(max_examples=150)
def test_arbitrary_bytes(data: bytes, name: str, choice: Choice) -> None:
    check(data, name, choice)


@given(st.lists(WORDS, max_size=14), NAMES, CHOICES)
@settings(max_examples=300)
def test_logs_of_all_that_evals_print(words: list[str], name: str, choice: Choice) -> None:
    check("".join(words).encode(), name, choice)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=3), NAMES, CHOICES)
@settings(max_examples=300)
def test_json_of_known_keys(objects: list[dict[str, object]], name: str, choice: Choice) -> None:
    check("\n".join(map(json.dumps, objects)).encode(), name, choice)


@given(st.dictionaries(st.integers(0, 10**6), st.booleans(), min_size=1, max_size=40))
def test_answers_written_are_answers_read(answers: dict[int, bool]) -> None:
    text = "".join(json.dumps({"id": q, "correct": r}) + "\n" for q, r in answers.items())
    assert parse_bytes(text.encode(), "a.jsonl").answers == answers


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_printed_share_gives_back_the_count(counts: tuple[int, int]) -> None:
    correct, asked = counts
    score = parse_bytes(f"Score: {correct / asked:.6f}\n".encode(), "x.log", Choice(asked=asked))
    assert score.correct == correct
    assert score.score == pytest.approx(correct / asked, abs=1e-6)
