"""Multi-step arithmetic with a written-out chain, graded on the last number.

A problem is a start value and a list of operations, evaluated strictly from left to right::

    prompt   47+25-38*2:
    answer   47+25=72;72-38=34;34*2=68

Text is tokenised character by character. Every value stays within 0..9999.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PAD, BOS, EOS = 0, 1, 2
ALPHABET = "0123456789+-*=;:"
VOCAB_SIZE = 3 + len(ALPHABET)
LARGEST_VALUE = 9999
EASY, HARD = "easy", "hard"
HARNESS_VERSION = "1"

_ID_OF = {character: index + 3 for index, character in enumerate(ALPHABET)}
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, slots=True)
class Problem:
    """One question: its prompt, the chain a perfect solver writes, and the number it ends on."""

    id: int
    prompt: str
    chain: str
    answer: int

    @property
    def operations(self) -> int:
        return self.chain.count("=")


def encode(text: str) -> list[int]:
    """Token ids of `text`, one per character. KeyError on a character outside the alphabet."""
    return [_ID_OF[character] for character in text]


def decode(tokens: Sequence[int]) -> str:
    """Text of `tokens`; special and unknown ids are left out."""
    return "".join(ALPHABET[token - 3] for token in tokens if 3 <= token < VOCAB_SIZE)


def prompt_tokens(problem: Problem) -> list[int]:
    """What the model is asked: BOS and the prompt."""
    return [BOS, *encode(problem.prompt)]


def grade(text: str, answer: int) -> str:
    """`right`, `wrong`, or `invalid` when the text holds no number at all."""
    found = _LAST_NUMBER.search(text)
    if found is None:
        return "invalid"
    return "right" if int(found[1]) == answer else "wrong"


def is_held_out(prompt: str) -> bool:
    """Whether a prompt belongs to the problem set's share (1 in 16); training draws only others."""
    return zlib.crc32(prompt.encode()) % 16 == 0


def make_problem(rng: random.Random, operations: int, level: str, id: int = 0) -> Problem:
    """Draw one problem.

    `easy` multiplies only values up to 111, by 2..9; `hard` also multiplies once, at a place drawn
    at random, by 12..99 where a product below 10000 allows it.
    """
    value = rng.randrange(2, 100)
    prompt = str(value)
    steps = []
    hard_at = rng.randrange(operations) if level == HARD else -1
    for position in range(operations):
        operator, operand = _draw_operation(rng, value, hard=position == hard_at)
        result = _apply(value, operator, operand)
        prompt += f"{operator}{operand}"
        steps.append(f"{value}{operator}{operand}={result}")
        value = result
    return Problem(id, prompt + ":", ";".join(steps), value)


def draw_problems(rng: random.Random, mixture: Sequence[tuple[int, str, int]]) -> Iterator[Problem]:
    """Distinct held-out problems, shuffled: `mixture` lists (operations, level, how many)."""
    seen: set[str] = set()
    drawn: list[tuple[int, str]] = [
        (operations, level) for operations, level, count in mixture for _ in range(count)
    ]
    rng.shuffle(drawn)
    for index, (operations, level) in enumerate(drawn):
        problem = make_problem(rng, operations, level, index)
        while problem.prompt in seen or not is_held_out(problem.prompt):
            problem = make_problem(rng, operations, level, index)
        seen.add(problem.prompt)
        yield problem


def _draw_operation(rng: random.Random, value: int, *, hard: bool) -> tuple[str, int]:
    if hard and 1 <= value <= 200:
        return "*", rng.randrange(12, min(100, LARGEST_VALUE // value + 1))
    choices = []
    if value <= LARGEST_VALUE - 99:
        choices.append("+")
    if value >= 1:
        choices.append("-")
    if 1 <= value <= 111:
        choices.append("*")
    operator = rng.choice(choices)
    if operator == "+":
        return operator, rng.randrange(1, 100)
    if operator == "-":
        return operator, rng.randrange(1, min(99, value) + 1)
    return operator, rng.randrange(2, 10)


def _apply(value: int, operator: str, operand: int) -> int:
    if operator == "+":
        return value + operand
    if operator == "-":
        return value - operand
    return value * operand
