"""What the light stand-in answers with: a program that works the problems out."""

from __future__ import annotations

import re

_STEP = re.compile(r"([+\-*])(\d+)")


def solve(prompt: str) -> str:
    """The chain of the last line of a prompt, which must be a problem; nothing for another."""
    problem = prompt.strip().splitlines()[-1].removesuffix(":")
    start = re.match(r"\d+", problem)
    if start is None:
        return ""
    value, chain = int(start[0]), []
    for operator, operand in _STEP.findall(problem):
        result = apply(value, operator, int(operand))
        chain.append(f"{value}{operator}{operand}={result}")
        value = result
    return ";".join(chain)


def apply(value: int, operator: str, operand: int) -> int:
    if operator == "+":
        return value + operand
    if operator == "-":
        return value - operand
    return value * operand
