"""Binary search over subjects whose verdict is certain."""

from __future__ import annotations

import itertools

import numpy as np

from poolbisect.bisection.costs import entropy
from poolbisect.bisection.facts import Facts
from poolbisect.bisection.outcome import Find, Kind, ProbeRequest, Result, Verdict
from poolbisect.bisection.plan import Plan
from poolbisect.bisection.posterior import Floats
from poolbisect.bisection.testability import give_up, testable_probability


def decide(facts: Facts, plan: Plan, weights: Floats) -> ProbeRequest | Result:
    """The next probe, or the answer."""
    last = len(weights) - 1
    verdicts: dict[int, Verdict] = {}
    for position, seen in facts.measured:
        verdict = seen.verdict
        if verdict is None:
            continue
        if verdicts.setdefault(position, verdict) is not verdict:
            return _contradiction(position, position in (0, last), facts)
    for end in (0, last):
        if end not in verdicts:
            return ProbeRequest(end, reason="verify the ends")
    if verdicts[0] is verdicts[last]:
        kind = Kind.BOTH_GOOD if verdicts[0] is Verdict.GOOD else Kind.BOTH_BAD
        return Result(kind, f"both ends are {verdicts[0]}", facts.spent)
    old_state = Verdict.GOOD if plan.find is Find.INTRODUCED else Verdict.BAD
    if verdicts[0] is not old_state:
        other = "fixed" if plan.find is Find.INTRODUCED else "introduced"
        return Result(
            Kind.REVERSED,
            f"the older end is {verdicts[0]} and the newer {verdicts[last]}: look for what was "
            f"{other} (--find {other})",
            facts.spent,
        )
    for suspect in facts.suspects:
        for position in (suspect, suspect - 1):
            if position >= 0 and position not in verdicts and position not in facts.blocked:
                return ProbeRequest(position, reason="suspect and its parent first")
    return _halve(facts, weights, verdicts, old_state)


def _contradiction(position: int, is_end: bool, facts: Facts) -> Result:
    if is_end:
        reason = "an end's verdict changed when it was measured again: environment, not code"
        return Result(Kind.ENVIRONMENT, reason, facts.spent, suspects=(position, position))
    reason = "one commit was both good and bad: not deterministic, search with repeats"
    return Result(Kind.FLAKY, reason, facts.spent, suspects=(position, position))


def transitions(verdicts: dict[int, Verdict], old_state: Verdict) -> list[tuple[int, int]]:
    """Neighbouring measured pairs (old state, new state), oldest first."""
    known = sorted(verdicts)
    return [
        (a, b)
        for a, b in itertools.pairwise(known)
        if verdicts[a] is old_state and verdicts[b] is not old_state
    ]


def _halve(
    facts: Facts, weights: Floats, verdicts: dict[int, Verdict], old_state: Verdict
) -> ProbeRequest | Result:
    # The latest transition is the one that made the newer end what it is.
    *earlier, (low, high) = transitions(verdicts, old_state)
    others = tuple((a + 1, b) for a, b in earlier)
    if high - low == 1:
        kind = Kind.SECOND_STEP if others else Kind.CULPRIT
        reason = "the commit before it was measured in the old state, the commit itself in the new"
        return Result(kind, reason, facts.spent, high, (high, high), 1.0, others)
    inside = weights[low + 1 : high + 1]
    # Ruled-out candidates carry no mass; equal weights if the prior has nothing here.
    inside = inside / inside.sum() if inside.sum() > 0 else np.full(high - low, 1 / (high - low))
    runs = testable_probability(len(weights), verdicts.keys(), facts.broken)[low + 1 : high]
    open_ = np.array([p not in facts.blocked for p in range(low + 1, high)])
    score = runs * entropy(inside.cumsum()[:-1]) * open_
    if not open_.any() or give_up(low, high, facts.broken, runs[open_]):
        reason = "the commits between cannot be tested"
        return Result(Kind.SUSPECT_RANGE, reason, facts.spent, None, (low + 1, high), 1.0, others)
    best = np.flatnonzero(score >= score.max() * (1 - 1e-9))
    middle = (high - low - 2) / 2
    pick = int(best[np.abs(best - middle).argmin()])
    return ProbeRequest(low + 1 + pick, reason="halve the range")
