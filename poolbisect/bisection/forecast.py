"""What a search will cost, before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.errors import UsageError


@dataclass(frozen=True, slots=True)
class Expected:
    """Means, except that an exact search's `probes` are its most. `cost` in the plan's unit."""

    probes: int
    questions: int
    switches: int
    cost: float


def expect(
    commits: int,
    plan: Plan,
    *,
    good_rate: float | None = None,
    bad_rate: float | None = None,
    discordant: float | None = None,
) -> Expected:
    """Both ends, then log2(commits - 1) midpoints.

    Scores (`counts`, `paired`) need both expected rates, `paired` also the share of questions
    that a good and a bad build answer differently. Mean length of Wald's test (1945) at each
    midpoint, with its rates known: (1 - 2a) ln((1 - a) / a) / KL, a = (1 - confidence) /
    midpoints. The search has to learn the rates, so this is a lower guide, not a bound: see the
    table in docs/bisection.md. Raises UsageError where a needed rate is missing.
    """
    steps = math.log2(max(commits - 1, 1))
    if plan.mode in (Mode.EXACT, Mode.VERDICTS):
        repeats = 1 if plan.mode is Mode.EXACT else 2
        places = 2 + math.ceil(steps)
        return _priced(places * repeats, places * repeats, places - 1, plan.costs)
    if good_rate is None or bad_rate is None or not 0 < bad_rate < good_rate < 1:
        raise UsageError("a forecast needs a good and a lower bad rate between 0 and 1")
    drop = good_rate - bad_rate
    if plan.mode is Mode.PAIRED:
        if discordant is None or not drop <= discordant < 1:
            raise UsageError("a paired forecast needs the discordant share, at least the drop")
        divergence = paired_divergence(drop, discordant)
        ends = 4 * plan.first_questions
    else:
        middle = (good_rate + bad_rate) / 2
        divergence = drop**2 / (2 * middle * (1 - middle))
        ends = 2 * plan.first_questions
    a = (1 - plan.confidence) / max(steps, 1.0)
    each = max((1 - 2 * a) * math.log((1 - a) / a) / divergence, plan.smallest_batch)
    probes = round((4 if plan.mode is Mode.PAIRED else 2) + steps)
    return _priced(probes, round(ends + steps * each), round(1 + steps), plan.costs)


def paired_divergence(drop: float, discordant: float) -> float:
    """Nats per question from the questions that only the good end got right.

    If what is discordant beyond the drop are coin flips in both builds, that class holds a share
    drop + (discordant - drop) / 2 of the questions, and good builds get them right again with
    probability r, bad ones with 1 - r.
    """
    flips = discordant - drop
    lost = drop + flips / 2
    r = min((drop + flips / 4) / lost, 0.99)
    return lost * (2 * r - 1) * math.log(r / (1 - r))


def _priced(probes: int, questions: int, switches: int, costs: CostModel) -> Expected:
    price = costs.switch * (switches + 1) + costs.probe * probes + costs.question * questions
    return Expected(probes, questions, switches, price)
