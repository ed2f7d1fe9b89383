"""What is asked: the miniature's problems, or a local file in GSM8K's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.errors import UsageError
from poolbisect.measurement import Outcome
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.questions import (
    few_shot_questions,
    grade_last_number,
    last_number,
    miniature_questions,
)
from poolbisect.probes.server.workload import model_for, questions_for
from poolbisect.scenario import load_scenario

SHEEP = [
    {"question": "Two sheep and one?", "answer": "2 + 1 = 3\n#### 3"},
    {"question": "A thousand and two?", "answer": "1,000 + 2\n#### 1,002"},
    {"question": "Five less seven?", "answer": "#### -2"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sheep.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in SHEEP))
    return path


def test_the_miniature_asks_its_1319_problems_as_they_stand() -> None:
    asked = miniature_questions()
    assert (len(asked), asked.shots, asked.stops) == (1319, 0, ())
    assert asked.questions[0].prompt == "69+82:"
    assert asked.grade("69+82=151", 151) is Outcome.RIGHT
    assert asked.part(1300, 50).questions == asked.questions[1300:]


def test_shots_are_shown_and_not_asked(file: Path) -> None:
    asked = few_shot_questions(file, shots=1)
    assert [question.id for question in asked.questions] == [1, 2]
    assert [question.expected for question in asked.questions] == [1002, -2]
    assert asked.questions[0].prompt == (
        "Question: Two sheep and one?\nAnswer: 2 + 1 = 3\n#### 3\n\n"
        "Question: A thousand and two?\nAnswer:"
    )
    assert "Question" in asked.stops


def test_upstreams_1319_lines_with_five_shots_are_1314_questions(tmp_path: Path) -> None:
    path = tmp_path / "gsm8k.jsonl"
    path.write_text("".join(json.dumps(SHEEP[0]) + "\n" for _ in range(1319)))
    scenario = load_scenario("mimo-v2-flash")
    asked = questions_for(scenario, ServerOptions(evaluation=path))
    assert (len(asked), asked.shots, asked.max_new_tokens) == (1314, 5, 512)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("so it is 1,002", Outcome.RIGHT),
        ("first 5, then 1002.00.", Outcome.RIGHT),
        ("1002 and then 3", Outcome.WRONG),
        ("$1,002", Outcome.RIGHT),
        ("-1002", Outcome.WRONG),
        ("none", Outcome.INVALID),
        ("", Outcome.INVALID),
    ],
)
def test_the_last_number_counts(text: str, outcome: Outcome) -> None:
    assert grade_last_number(text, 1002) is outcome


@given(st.text(), st.integers(-(10**9), 10**9))
def test_any_text_is_graded_and_a_number_at_its_end_is_found(text: str, number: int) -> None:
    assert grade_last_number(text, number) in Outcome
    assert last_number(f"{text} = {number:,}") == number


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"question": "a", "answer": "1"}\n', "not enough for 1 shots"),
        ('{"question": "a"}\n' * 3, "sheep.jsonl:1: not a"),
        ('{"question": "a", "answer": "1"}\nno json\n', "sheep.jsonl:2: not a"),
        ('{"question": "a", "answer": "?"}\n' * 3, "sheep.jsonl:2: the answer ends on no whole"),
        ('{"question": "a", "answer": "1.5"}\n' * 3, "sheep.jsonl:2: the answer ends on no whole"),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused_by_line(
    file: Path, content: str, words: str
) -> None:
    file.write_text(content)
    with pytest.raises(UsageError, match=words):
        few_shot_questions(file, shots=1)


def test_a_missing_file_too_many_questions_and_a_task_that_is_not_shipped(file: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        few_shot_questions(file.with_name("other.jsonl"))
    with pytest.raises(UsageError, match="has 2 questions beside the 1 shots, 3 were asked"):
        few_shot_questions(file, shots=1, count=3)
    with pytest.raises(UsageError, match="give its questions with --eval"):
        questions_for(load_scenario("mimo-v2-flash"), ServerOptions())


def test_which_model_is_served() -> None:
    canary, flash = load_scenario("mimo-canary"), load_scenario("mimo-v2-flash")
    assert model_for(flash, ServerOptions()) == "XiaomiMiMo/MiMo-V2-Flash"
    assert model_for(flash, ServerOptions(model="/models/flash")) == "/models/flash"
    with pytest.raises(UsageError, match="export-model DIR"):
        model_for(canary, ServerOptions())
