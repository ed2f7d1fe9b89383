"""The next probe: most expected information per cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from poolbisect.bisection.costs import CostModel, entropy, information
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.posterior import ChangePoint, Floats

SIZES = 2.0 ** np.arange(0, 7)
FIRST_SHARE = 4
"""A first probe asks 1 / FIRST_SHARE of the questions planned: it can end the stay early."""
GROWTH = 10
"""Later ones ask at least 1 / GROWTH of what the commit has answered, to keep probes few."""


@dataclass(frozen=True, slots=True)
class Candidate:
    position: int
    questions: int
    nats: float
    per_cost: float
    extends: bool = False
    """The commit has answered all common questions: the ends have to answer more first."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where a probe may go. `untried` (n,): never measured and allowed; `testable` (n,): chance
    that they run; `revisit`: measured ones; `room`: how many more questions each can be asked;
    `extendable`: how many more the ends can answer, where commits share their questions."""

    untried: NDArray[np.bool_]
    testable: Floats
    revisit: list[int]
    room: Callable[[int], int]
    here: int | None
    extendable: int = 0


SATURATED = 0.3
"""Share of the information that known rates would give, below which a commit is left."""
WRONG_TURN = 0.3
"""Share of the rest of a search that a wrong turn wastes before it shows (by simulation)."""
DECIDED = 0.8
"""Share of one bit that the common questions should be worth at one commit."""
SHAPE_OPEN = 0.5
"""P(not one step) from which on other places are looked at: only they tell the shape."""
SHAPE_BATCHES = 8
"""Batches at a place that are enough to tell the shape from."""
LIKELY = 1e-4
"""Explanations less likely than this are left out of the forecast."""


class Reading:
    """What a batch at a position would show, and how much it would tell between explanations.

    Strata are projected on the direction that tells the two sides of the step apart.
    """

    def __init__(self, model: ChangePoint) -> None:
        old, new = model.overall()
        self._model = model
        self._share = model.tally.share
        self._binomial = (old * (1 - old) + new * (1 - new)) / 2
        self._axis = self._share * (old - new) / self._binomial
        self.divergence = float((self._share * (old - new) ** 2 / self._binomial).sum() / 2)
        """Mean log-likelihood ratio of the two sides per question, nats, if rates were known."""

    def nats(self, position: int, below: float, questions: Floats) -> Floats:
        """Expected nats from each effective number of `questions` (M,)."""
        views = self._model.explanations(position, below)
        live = views.chances > LIKELY
        asked = np.maximum(questions[:, None] * self._share, 1e-9)
        noise = (self._axis**2 * self._binomial / asked).sum(axis=1)
        deviations = np.sqrt(views.variances[live] @ self._axis**2 + noise[:, None])
        means = np.broadcast_to(views.means[live] @ self._axis, deviations.shape)
        return information(views.chances[live] / views.chances[live].sum(), means, deviations)


def best_probe(
    model: ChangePoint,
    options: Options,
    *,
    batch: int,
    costs: CostModel,
    noise: Noise,
    confidence: float,
) -> Candidate | None:
    """Stay while that saves a way back, else the place that teaches most per cost.

    None if nothing teaches anything.
    """
    mass = model.distribution()
    step = mass.sum()
    if step <= 0:
        return None
    mass = mass / step
    below = np.minimum(mass.cumsum(), 1.0)
    tally = model.tally
    effective = dict(zip(tally.positions.tolist(), tally.asked.sum(axis=0).tolist(), strict=True))
    reading = Reading(model)

    def offer(position: int) -> Candidate:
        room, extends = options.room(position), False
        if room == 0:
            room, extends = options.extendable, True
        sizes = np.unique(np.minimum(batch * SIZES, room))
        done = effective.get(position, 0.0)
        nats = reading.nats(position, float(below[position]), added_weight(done, sizes, noise))
        stay = position == options.here
        price = costs.probe + costs.question * sizes + costs.switch * (not stay)
        if extends:
            price = price + 2 * (costs.switch + 2 * (costs.probe + costs.question * sizes))
        chance = options.testable[position] if options.untried[position] else 1.0
        value = chance * nats / price
        top = int(value.argmax())
        # With a price on every probe, cutting one into parts is not free.
        ask = int(sizes[top]) if costs.probe else int(sizes[top]) // FIRST_SHARE
        ask = max(batch, ask, int(done / GROWTH) if stay else 0)
        ask = min(ask, room)
        return Candidate(position, ask, float(nats[top]), float(value[top]), extends)

    places = [p for p in options.revisit if options.room(p) or options.extendable]
    here = options.here
    worth = np.where(options.untried, options.testable * entropy(below), 0.0)
    if model.slope + model.two > SHAPE_OPEN and options.untried.any():
        # The forecast takes each side's rate as one; more of the same would never settle this.
        enough = batch * SHAPE_BATCHES
        unsure = here is not None and effective.get(here, enough) < enough
        places = [p for p in places if unsure and p == here]
        worth = worth if worth.max() > 0 else options.untried * options.testable
    if here in places and options.room(here) and 0 < here < len(mass) - 1:
        stay = offer(here)
        error = float(min(below[here], 1 - below[here]))
        adjacent = float(mass[here] + mass[here + 1])
        # Where the sides' own rates are too uncertain, more of the same teaches little.
        known = error * (1 - error) * reading.divergence * stay.questions
        if stay.nats > SATURATED * min(known, 0.1) and error > leave_at(
            adjacent, reading.divergence, float(entropy_of(mass)), costs, confidence
        ):
            return stay
    if worth.max() > 0:
        best = np.flatnonzero(worth >= worth.max() * (1 - 1e-9))
        places.append(int(best[len(best) // 2]))
    offers = [offer(position) for position in places]
    winner = max(offers, key=lambda o: o.per_cost, default=None)
    return winner if winner is not None and winner.nats > 1e-9 else None


def enough_questions(model: ChangePoint, questions: int) -> bool:
    """Whether `questions` asked half way would all but decide the side, given the rates' own
    uncertainty."""
    middle = int(model.tally.positions[-1]) // 2
    nats = Reading(model).nats(middle, 0.5, np.array([float(questions)]))[0]
    return bool(nats >= DECIDED * np.log(2))


def entropy_of(mass: Floats) -> Floats:
    """Entropy of a distribution, in nats."""
    return np.asarray(-xlogy(mass, mass).sum())


def leave_at(
    adjacent: float, divergence: float, open_nats: float, costs: CostModel, confidence: float
) -> float:
    """Error about a commit's side at which it pays to leave it.

    A wrong turn costs the rest of the search: `open_nats` / ln 2 commits, each a switch and a
    test; more questions divide the error by e at 1 / `divergence` each. So the error is worth
    halving while error * loss * divergence > 1. A commit that may be next to the step
    (`adjacent`) will have to be known at the final confidence: that saves a switch back.
    """
    each = 1.0 / max(divergence, 1e-9) * costs.question
    loss = WRONG_TURN * max(open_nats / np.log(2), 1.0) * (costs.switch + 4 * each)
    final = (1 - confidence) / 3
    early = min(0.25, max(each / loss, final))
    back = adjacent * costs.switch
    return final if back > each * np.log(early / final) else early


def added_weight(done: float, sizes: Floats, noise: Noise) -> Floats:
    """Effective questions that one more run of each size adds to a commit that has `done`."""
    # The commit's own effect is already taken out of `done`; put it back before adding.
    raw = done * (1 - noise.commit) / max(1 - noise.commit * done, 1e-9) if done else 0.0
    runs = np.array([raw + noise.run_weight(size) * size for size in sizes])
    return np.array([noise.commit_weight(run) * run for run in runs]) - done
