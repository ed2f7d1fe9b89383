"""Pass/fail gates on a score, and what they let through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from scipy.stats import binom

# A score and a gate that agree to this are equal; 0.755 * 200 is not exactly 151 in binary.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Gate:
    """A score passes at `>= value`, or only at `> value` where the gate is strict."""

    value: float
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise ValueError(f"a gate must lie between 0 and 1, got {self.value}")

    def __str__(self) -> str:
        return f"{'>' if self.strict else '>='} {self.value:g}"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """Whether a score passed; `note` speaks up where the strictness alone decided."""

    passed: bool
    margin: float
    note: str = ""


def check_gate(score: float, gate: Gate) -> GateCheck:
    """Check one score; a score equal to the gate passes `>=` and fails `>`."""
    margin = score - gate.value
    if abs(margin) > _TIE:
        return GateCheck(margin > 0, margin)
    other = Gate(gate.value, not gate.strict)
    outcome = "fails" if gate.strict else "passes"
    opposite = "pass" if gate.strict else "fail"
    note = f"the score equals the gate: it {outcome} at {gate} and would {opposite} at {other}"
    return GateCheck(not gate.strict, margin, note)


@dataclass(frozen=True, slots=True)
class PassOdds:
    """Chance that a build passes: on one attempt, and with the best of `attempts` counting."""

    single: float
    best_of: float
    attempts: int


def pass_odds(accuracy: float, questions: int, gate: Gate, attempts: int = 1) -> PassOdds:
    """Chance that a build of true accuracy `accuracy` passes, questions drawn at random.

    Binomial tail from the smallest passing count; the best of m attempts passes with
    1 - (1 - p)^m. Both are returned together, since the second alone hides what the gate is.
    """
    if not (0 <= accuracy <= 1 and questions > 0 and attempts > 0):
        raise ValueError(f"impossible: accuracy {accuracy}, n {questions}, attempts {attempts}")
    bar = gate.value * questions
    needed = floor(bar + _TIE) + 1 if gate.strict else ceil(bar - _TIE)
    single = float(binom.sf(needed - 1, questions, accuracy))
    return PassOdds(single, 1 - (1 - single) ** attempts, attempts)


@dataclass(frozen=True, slots=True)
class Attempts:
    """All attempts at one score: the best never stands without the others."""

    scores: tuple[float, ...]
    best: float
    mean: float
    passed: int

    def __str__(self) -> str:
        listed = ", ".join(f"{score:.4g}" for score in self.scores)
        return (
            f"best {self.best:.4g} of {len(self.scores)} attempts ({listed}; mean {self.mean:.4g}),"
            f" {self.passed} passed"
        )


def attempts_at(scores: Sequence[float], gate: Gate) -> Attempts:
    """Sum up repeated attempts at a gate; raises ValueError without any score."""
    if not scores:
        raise ValueError("no attempt was made")
    passed = sum(check_gate(score, gate).passed for score in scores)
    return Attempts(tuple(scores), max(scores), float(np.mean(scores)), passed)
