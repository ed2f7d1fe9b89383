"""Search over subjects that can only be sampled: scores, or verdicts that may err."""

from __future__ import annotations

import itertools

import numpy as np

from poolbisect.bisection.choice import Options, best_probe, enough_questions
from poolbisect.bisection.counting import Strata, unpaired
from poolbisect.bisection.diagnosis import DISAGREE, MISFIT, runs_p_value, spread_p_value
from poolbisect.bisection.ends import alike, verify
from poolbisect.bisection.facts import Facts
from poolbisect.bisection.outcome import Kind, ProbeRequest, Result
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.bisection.posterior import ChangePoint, Floats, credible_range
from poolbisect.bisection.shapes import Tally
from poolbisect.bisection.testability import give_up, testable_probability

UNLIMITED = 10**9


def tally_of(facts: Facts, plan: Plan, last: int) -> tuple[Tally, Strata | None]:
    """Effective counts; both ends must have been measured."""
    if plan.mode is Mode.PAIRED:
        strata = Strata(facts, last)
        return strata.tally(plan.noise), strata
    return unpaired(facts, plan.noise), None


def fit(tally: Tally, strata: Strata | None, plan: Plan, weights: Floats) -> ChangePoint:
    """The posterior for a tally."""
    old, new = plan.priors
    extra = strata.log_odds_of_change() if strata else 0.0
    return ChangePoint(tally, weights, old=old, new=new, rule=plan.rule, ends_log_odds=extra)


def decide(facts: Facts, plan: Plan, weights: Floats) -> ProbeRequest | Result:
    """The next probe, or the answer."""
    last = len(weights) - 1
    known = facts.positions()
    strata = Strata(facts, last) if plan.mode is Mode.PAIRED else None
    waiting = verify(facts, plan, last, strata)
    if waiting is not None:
        return waiting
    for suspect in facts.suspects:
        for position in (suspect, suspect - 1):
            if position >= 0 and position not in known and position not in facts.blocked:
                questions = max(plan.smallest_batch, plan.first_questions // 2)
                questions = min(questions, strata.size) if strata else questions
                return ProbeRequest(position, questions, reason="suspect and its parent first")
    disagreement = _disagreement(facts, plan, last)
    if disagreement is not None:
        return disagreement
    tally = strata.tally(plan.noise) if strata else unpaired(facts, plan.noise)
    model = fit(tally, strata, plan, weights)
    answer = settled(facts, plan, model)
    if strata is not None and answer is None and known == [0, last]:
        more = (
            None if enough_questions(model, strata.size) else _more_questions(facts, plan, strata)
        )
        if more is not None:
            return more
    if answer is None:
        return _ask(facts, plan, model, strata)
    if answer.kind is Kind.DRIFT:
        return _look_around(facts, plan, last, strata) or answer
    return answer


PLACES = 8
"""A slope is called one only after looking at this many places along the range."""


def _look_around(facts: Facts, plan: Plan, last: int, strata: Strata | None) -> ProbeRequest | None:
    """The middle of a gap too wide to tell a slope from a few steps."""
    known = facts.positions()
    for low, high in itertools.pairwise(known):
        if high - low <= max(1, -(-last // PLACES)):
            continue
        middle = (low + high) // 2
        inside = [p for p in range(low + 1, high) if p not in facts.blocked]
        if not inside or sum(low < p < high for p in facts.broken) > 1:
            continue
        position = min(inside, key=lambda p: abs(p - middle))
        questions = strata.size if strata else plan.first_questions
        return ProbeRequest(position, questions, reason="a slope, or several steps?")
    return None


def _ask(
    facts: Facts, plan: Plan, model: ChangePoint, strata: Strata | None
) -> ProbeRequest | Result:
    count = len(model.distribution())
    last = count - 1
    known = facts.positions()
    runs = testable_probability(count, known, facts.broken)
    untried = np.ones(count, dtype=bool)
    untried[[*known, *facts.blocked]] = False
    for low, high in itertools.pairwise(known):
        inside = slice(low + 1, high)
        if untried[inside].any() and give_up(
            low, high, facts.broken, runs[inside][untried[inside]]
        ):
            untried[inside] = False

    def room(position: int) -> int:
        return UNLIMITED if strata is None else max(strata.size - strata.asked(position), 0)

    revisit = [p for p in known if p not in facts.blocked]
    if strata is not None:
        revisit = [p for p in revisit if p not in (0, last)]
    spare = plan.most_end_questions - strata.size if strata is not None else 0
    options = Options(untried, runs, revisit, room, facts.last_position, max(spare, 0))
    best = best_probe(
        model,
        options,
        batch=plan.smallest_batch,
        costs=plan.costs,
        noise=plan.noise,
        confidence=plan.confidence,
    )
    if best is None or best.extends:
        more = _more_questions(facts, plan, strata)
        return more or conclude(facts, plan, model, "nothing left to measure tells more")
    start = strata.asked(best.position) if strata else 0
    return ProbeRequest(best.position, best.questions, start, "most information per cost")


def _more_questions(facts: Facts, plan: Plan, strata: Strata | None) -> ProbeRequest | None:
    """Paired: the common questions are too few, so the ends answer as many again."""
    if strata is None or strata.size >= plan.most_end_questions:
        return None
    more = min(strata.size, plan.most_end_questions - strata.size)
    last = strata.ends[1]
    end = last if facts.last_position == last else 0
    return ProbeRequest(end, more, strata.size, "the common questions are too few")


def _disagreement(facts: Facts, plan: Plan, last: int) -> Result | None:
    """Runs of one commit that cannot be one commit's."""
    repeated = [p for p in facts.positions() if len(facts.at(p)) > 1]
    for position in repeated:
        if runs_p_value(facts.at(position), plan.noise) >= DISAGREE / len(repeated):
            continue
        if position in (0, last):
            kind, what = Kind.ENVIRONMENT, "an end scored differently when measured again"
        else:
            kind, what = Kind.FLAKY, "runs of one commit differ more than the noise allows"
        return Result(kind, what, facts.spent, suspects=(position, position))
    return None


def settled(facts: Facts, plan: Plan, model: ChangePoint) -> Result | None:
    """An answer that has reached the asked confidence."""
    if model.none >= plan.confidence:
        rate = float(model.tally.right.sum() / model.tally.asked.sum())
        return alike(facts, plan, rate, rate, 0.5)
    if model.slope >= plan.confidence:
        return _drift(facts, model)
    positions = model.tally.positions
    gap = int(model.gaps.argmax())
    if model.gaps[gap] < plan.confidence:
        return None
    low, high = int(positions[gap]), int(positions[gap + 1])
    if high - low == 1:
        return _culprit(facts, plan, model, gap)
    untried = [p for p in range(low + 1, high) if p not in facts.blocked]
    runs = testable_probability(int(positions[-1]) + 1, positions.tolist(), facts.broken)
    if not untried or give_up(low, high, facts.broken, runs[untried]):
        reason = "the commits between cannot be tested"
        mass = float(model.gaps[gap])
        return Result(Kind.SUSPECT_RANGE, reason, facts.spent, None, (low + 1, high), mass)
    return None


def _culprit(facts: Facts, plan: Plan, model: ChangePoint, gap: int) -> Result:
    positions = model.tally.positions
    culprit, mass = int(positions[gap + 1]), float(model.gaps[gap])
    misfit = _misfit(facts, plan, model, gap)
    if misfit is not None:
        return misfit
    if model.two >= 0.9:
        other = model.other_step(gap)
        where = (int(positions[other]) + 1, int(positions[other + 1]))
        reason = "this step crosses the rule; another step exists"
        span = (culprit, culprit)
        return Result(Kind.SECOND_STEP, reason, facts.spent, culprit, span, mass, (where,))
    reason = "one step at this commit explains the scores"
    return Result(Kind.CULPRIT, reason, facts.spent, culprit, (culprit, culprit), mass)


def _misfit(facts: Facts, plan: Plan, model: ChangePoint, gap: int) -> Result | None:
    """Unpaired scores that jump about on one side of the step."""
    if model.tally.right.shape[0] != 1 or plan.mode is Mode.VERDICTS:
        return None
    counts = list(zip(model.tally.right[0], model.tally.asked[0], strict=True))
    cuts = [0, gap + 1, len(counts)]
    if model.two >= 0.5:
        cuts = sorted({*cuts, model.other_step(gap) + 1})
    pieces = [counts[a:b] for a, b in itertools.pairwise(cuts)]
    if min(spread_p_value(piece, plan.noise) for piece in pieces) >= MISFIT:
        return None
    reason = "commits on one side of the best step differ more than the noise allows: not a step"
    return Result(Kind.FLAKY, reason, facts.spent, suspects=credible(model, plan.confidence))


def _drift(facts: Facts, model: ChangePoint) -> Result:
    ends = (1, int(model.tally.positions[-1]))
    reason = "a slope explains the scores better than any step"
    return Result(Kind.DRIFT, reason, facts.spent, None, ends, model.slope)


def credible(model: ChangePoint, mass: float) -> tuple[int, int]:
    return credible_range(model.distribution(), mass)


def conclude(facts: Facts, plan: Plan, model: ChangePoint, why: str) -> Result:
    """The most that can be said when no more may be asked."""
    answer = settled(facts, plan, model)
    if answer is not None:
        return answer
    if model.slope > 0.5:
        return _drift(facts, model)
    if model.none > 0.5:
        rate = float(model.tally.right.sum() / model.tally.asked.sum())
        return alike(facts, plan, rate, rate, 0.5)
    span = credible(model, plan.confidence)
    mass = float(model.distribution()[span[0] : span[1] + 1].sum())
    mixed = plan.mode is Mode.VERDICTS and any(
        len({seen.verdict for seen in facts.at(p)}) > 1 for p in facts.positions()
    )
    kind = Kind.FLAKY if mixed else Kind.SUSPECT_RANGE
    return Result(kind, why, facts.spent, None, span, mass)
