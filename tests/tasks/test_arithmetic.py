"""The arithmetic task: chains are right, and answers are graded on the last number."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.tasks.arithmetic import (
    ALPHABET,
    BOS,
    EASY,
    EOS,
    HARD,
    LARGEST_VALUE,
    PAD,
    VOCAB_SIZE,
    Problem,
    decode,
    draw_problems,
    encode,
    grade,
    is_held_out,
    make_problem,
    prompt_tokens,
)

problems = st.builds(
    lambda seed, operations, level: make_problem(random.Random(seed), operations, level),
    st.integers(0, 10**9),
    st.integers(1, 8),
    st.sampled_from([EASY, HARD]),
)
MIXTURE = [(1, EASY, 20), (3, HARD, 20), (6, HARD, 10)]


def left_to_right(prompt: str) -> tuple[list[str], int]:
    """The steps of a prompt and its value, evaluated strictly from left to right."""
    start, *rest = re.findall(r"\d+|[-+*]", prompt)
    value, steps = int(start), []
    for operator, operand in zip(rest[::2], map(int, rest[1::2]), strict=True):
        result = {"+": value + operand, "-": value - operand, "*": value * operand}[operator]
        steps.append(f"{value}{operator}{operand}={result}")
        value = result
    return steps, value


@given(problems)
def test_the_chain_evaluates_the_prompt_from_left_to_right(problem: Problem) -> None:
    steps, value = left_to_right(problem.prompt)
    assert problem.prompt.endswith(":")
    assert problem.chain.split(";") == steps
    assert problem.answer == value
    assert problem.operations == len(steps)
    results = [int(step.split("=")[1]) for step in steps]
    assert all(0 <= result <= LARGEST_VALUE for result in results)


@given(problems)
def test_a_perfect_answer_is_right_and_another_number_is_wrong(problem: Problem) -> None:
    assert grade(problem.chain, problem.answer) == "right"
    assert grade(problem.chain, problem.answer + 1) == "wrong"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("47+25=72;72-38=34;34*2=68", "right"),
        ("68", "right"),
        ("068", "right"),
        ("34*2=68;", "right"),
        ("68;34", "wrong"),
        ("681", "wrong"),
        ("6;8", "wrong"),
        ("", "invalid"),
        ("+-*=;:", "invalid"),
    ],
)
def test_the_last_number_counts(text: str, outcome: str) -> None:
    assert grade(text, 68) == outcome


@given(st.text(ALPHABET), st.lists(st.sampled_from([PAD, BOS, EOS, VOCAB_SIZE, -1])))
def test_text_survives_encoding_and_special_tokens_are_no_text(
    text: str, special: list[int]
) -> None:
    tokens = encode(text)
    assert len(tokens) == len(text)
    assert all(EOS < token < VOCAB_SIZE for token in tokens)
    assert decode(tokens) == text
    assert decode([*special, *tokens, *special]) == text


def test_a_character_outside_the_alphabet_is_refused() -> None:
    with pytest.raises(KeyError):
        encode("1/2:")


@given(problems)
def test_a_prompt_is_asked_behind_the_first_token(problem: Problem) -> None:
    first, *rest = prompt_tokens(problem)
    assert first == BOS
    assert decode(rest) == problem.prompt


@given(st.integers(0, 10**9), st.integers(1, 8))
def test_easy_problems_multiply_by_one_digit_and_hard_ones_once_by_two(
    seed: int, operations: int
) -> None:
    for level, at_most in ((EASY, 0), (HARD, 1)):
        problem = make_problem(random.Random(seed), operations, level)
        factors = [int(factor) for factor in re.findall(r"\*(\d+)", problem.prompt)]
        assert sum(factor >= 12 for factor in factors) <= at_most
        assert all(2 <= factor <= 99 and factor not in (10, 11) for factor in factors)
        if level == HARD and operations == 1:
            assert len(factors) == 1


def test_about_one_prompt_in_sixteen_is_held_out() -> None:
    rng = random.Random(7)
    prompts = {make_problem(rng, 4, HARD).prompt for _ in range(8000)}
    share = sum(map(is_held_out, prompts)) / len(prompts)
    # Five standard deviations of a share of 8,000.
    assert abs(share - 1 / 16) < 5 * (1 / 16 * 15 / 16 / len(prompts)) ** 0.5


@given(st.integers(0, 10**9))
def test_a_problem_set_is_distinct_held_out_and_as_mixed_as_asked(seed: int) -> None:
    drawn = list(draw_problems(random.Random(seed), MIXTURE))
    prompts = [problem.prompt for problem in drawn]
    assert len(set(prompts)) == len(prompts) == 50
    assert all(map(is_held_out, prompts)), "training draws only the others"
    assert [problem.id for problem in drawn] == list(range(50))
    operations = [problem.operations for problem in drawn]
    assert [operations.count(number) for number in (1, 3, 6)] == [20, 20, 10]
    assert operations != sorted(operations), "shuffled, so that any head of the set is a sample"
    for problem in drawn:
        assert left_to_right(problem.prompt)[1] == problem.answer


def test_a_problem_set_is_its_seed() -> None:
    def drawn(seed: int) -> list[Problem]:
        return list(draw_problems(random.Random(seed), MIXTURE))

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)
