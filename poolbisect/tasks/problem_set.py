"""The shipped problem set: 1,319 problems, as many as GSM8K's test set has.

    python -m poolbisect.tasks.problem_set

prints it anew; the difficulty mixture was chosen so that the healthy miniature scores 0.776.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import msgspec

from poolbisect.errors import UsageError
from poolbisect.tasks.arithmetic import EASY, HARD, Problem, draw_problems

NAME = "arithmetic-1319"
FILE = Path(__file__).with_name(f"{NAME}.jsonl")
SEED = 1319
MIXTURE = [(operations, EASY, 104) for operations in range(1, 7)] + [
    (operations, HARD, 115 if operations == 1 else 116) for operations in range(1, 7)
]


def load_problems(task: str, count: int) -> list[Problem]:
    """The first `count` problems of `task`. UsageError for another task or too many."""
    if task != NAME:
        raise UsageError(f"no task is named {task!r}; there is {NAME}")
    problems = msgspec.json.decode(
        b"[" + FILE.read_bytes().strip().replace(b"\n", b",") + b"]", type=list[Problem]
    )
    if count > len(problems):
        raise UsageError(f"{task} has {len(problems)} problems, {count} were asked for")
    return problems[:count]


def make_problem_set() -> list[Problem]:
    """The problem set from its seed and mixture."""
    return list(draw_problems(random.Random(SEED), MIXTURE))


if __name__ == "__main__":
    for problem in make_problem_set():
        sys.stdout.write(msgspec.json.encode(problem).decode() + "\n")
