"""Both ends first: is the symptom there at all?"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from poolbisect.bisection.counting import Strata, unpaired
from poolbisect.bisection.facts import Facts
from poolbisect.bisection.outcome import Find, Kind, ProbeRequest, Result
from poolbisect.bisection.plan import Mode, Plan

CLEAR = 0.95
"""Chance that the ends differ in the expected direction at which the search goes inside.

"No step" stays a rival until the end, so this gate only saves questions."""
LIKELY = 0.8
"""The same when the ends may not be asked more; below it they are called alike."""


def verify(
    facts: Facts, plan: Plan, last: int, strata: Strata | None
) -> ProbeRequest | Result | None:
    """The next probe of an end, a result, or None when the search may go inside."""
    if strata is None:
        return _unpaired(facts, plan, last)
    return _paired(facts, plan, last, strata)


def _unpaired(facts: Facts, plan: Plan, last: int) -> ProbeRequest | Result | None:
    asked = {end: sum(seen.asked for seen in facts.at(end)) for end in (0, last)}
    good_end = 0 if plan.find is Find.INTRODUCED else last
    for end in (0, last):
        wanted = plan.first_questions
        if end == good_end and plan.baseline is not None:
            wanted = max(wanted // 2, 1)
        if asked[end] < wanted:
            return ProbeRequest(end, wanted - asked[end], reason="verify the ends")
    right = {end: sum(seen.correct for seen in facts.at(end)) for end in (0, last)}
    tally = unpaired(facts, plan.noise)
    sides = [(float(tally.right[0, i]), float(tally.asked[0, i])) for i in (0, -1)]
    if plan.baseline is not None:
        known = 0 if good_end == 0 else 1
        sides[known] = (sides[known][0] + plan.baseline[0], sides[known][1] + plan.baseline[1])
    lower = chance_new_is_lower(sides[0], sides[1])
    clear = lower if plan.find is Find.INTRODUCED else 1 - lower
    if clear >= CLEAR or any(p not in (0, last) for p in facts.positions()):
        return None
    if min(asked.values()) < plan.most_end_questions:
        fewer = last if asked[last] <= asked[0] else 0
        # Stay while it is affordable: half as many again before changing over.
        if facts.last_position in asked and asked[facts.last_position] < 1.5 * asked[fewer]:
            fewer = facts.last_position
        step = max(plan.smallest_batch, asked[fewer] // 4)
        step = min(step, max(plan.most_end_questions - asked[fewer], plan.smallest_batch))
        return ProbeRequest(fewer, step, reason="the ends cannot be told apart yet")
    if clear >= LIKELY:
        return None
    return alike(facts, plan, right[0] / asked[0], right[last] / asked[last], clear)


def _paired(facts: Facts, plan: Plan, last: int, strata: Strata) -> ProbeRequest | Result | None:
    size = max(plan.first_questions, strata.asked(0), strata.asked(last))
    ends = (last, 0) if facts.last_position == last else (0, last)
    for end in ends:
        if strata.asked(end) < size:
            start = strata.asked(end)
            return ProbeRequest(end, size - start, start, "verify the ends")
        if strata.repeated(end) < size:
            start = strata.repeated(end)
            return ProbeRequest(end, size - start, start, "same questions again: how many flip")
    if any(p not in (0, last) for p in facts.positions()):
        return None
    lost, gained = strata.table[2], strata.table[1]
    tally = strata.tally(plan.noise)
    seconds = [(float(tally.right[:, i].sum()), float(tally.asked[:, i].sum())) for i in (0, -1)]
    drop = (lost - gained) / max(strata.table.sum(), 1.0)
    spread = np.sqrt(max(lost + gained, 1.0)) / max(strata.table.sum(), 1.0)
    second = seconds[0][0] / max(seconds[0][1], 1) - seconds[1][0] / max(seconds[1][1], 1)
    lower = float(ndtr((drop + second) / 2 / spread))
    clear = lower if plan.find is Find.INTRODUCED else 1 - lower
    if clear >= CLEAR:
        return None
    if size < plan.most_end_questions:
        more = min(max(size // 2, plan.smallest_batch), plan.most_end_questions - size)
        end = ends[0]
        return ProbeRequest(end, more, size, "the ends cannot be told apart yet")
    if clear >= LIKELY:
        return None
    old, new = (right / max(asked, 1.0) for right, asked in seconds)
    return alike(facts, plan, old, new, clear)


def chance_new_is_lower(old: tuple[float, float], new: tuple[float, float]) -> float:
    """P(rate at the new end < rate at the old end) from effective (right, asked), normal."""
    moments = []
    for right, asked in (old, new):
        rate = (right + 0.5) / (asked + 1)
        moments.append((rate, rate * (1 - rate) / (asked + 1)))
    gap = moments[0][0] - moments[1][0]
    return float(ndtr(gap / np.sqrt(moments[0][1] + moments[1][1])))


def alike(facts: Facts, plan: Plan, old: float, new: float, clear: float) -> Result:
    """No difference in the direction asked for."""
    good = plan.find is Find.INTRODUCED
    if plan.rule is not None:
        good = (old + new) / 2 >= plan.rule
    kind = Kind.BOTH_GOOD if good else Kind.BOTH_BAD
    reason = f"the ends score {old:.3f} and {new:.3f}: no difference to look for"
    if clear < 1 - CLEAR:
        kind = Kind.REVERSED
        reason = f"the ends score {old:.3f} and {new:.3f}: a change the other way round"
    verdict_mode = plan.mode is Mode.VERDICTS
    if verdict_mode and plan.rule is None:
        kind = Kind.BOTH_GOOD if (old + new) / 2 >= 0.5 else Kind.BOTH_BAD
    return Result(kind, reason, facts.spent)
