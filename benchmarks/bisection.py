"""How many questions, switches and mistakes a search costs: this project's and others'.

64 commits, 0.776 -> 0.72 at a random commit. Every trial has its own seed, made from --seed, the
case and the trial number, so a figure can be repeated whatever runs beside it.

    python benchmarks/bisection.py --trials 200 --jobs 2
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Observation, ProbeRequest, Result
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.bisection.search import Search

COMMITS, GOOD, BAD = 64, 0.776, 0.72
RUN_SD = 0.011
RHO = RUN_SD**2 / (GOOD * (1 - GOOD))
CAP = 60_000
"""Questions after which a search has to answer with what it has."""


@dataclass(frozen=True)
class Trial:
    """`answer` None: a range or another result without a culprit. `claimed`: its confidence."""

    culprit: int
    answer: int | None
    claimed: float
    questions: int
    probes: int
    switches: int


Ask = Callable[[int, int], int]
"""(position, questions) -> right answers."""


def unpaired(culprit: int, rng: np.random.Generator, rho: float) -> Ask:
    """New questions each time; each call is a run with a rate of its own if rho > 0."""

    def ask(position: int, questions: int) -> int:
        rate = GOOD if position < culprit else BAD
        if rho:
            rate = rng.beta(rate * (1 / rho - 1), (1 - rate) * (1 / rho - 1))
        return int(rng.binomial(questions, rate))

    return ask


def answer_sheet(
    culprit: int, rng: np.random.Generator, discordant: float, moving: bool
) -> Callable[[ProbeRequest], Observation]:
    """The same questions everywhere.

    Good and bad builds differ on `discordant` of the questions: 5.6 points are damage, the rest
    are coin flips in both (A/A discordance `discordant` - 5.6 points). `moving`: the damage hits
    other questions in every run, as it does when it follows slots and not prompts.
    """
    size, drop = 4000, GOOD - BAD
    flips = 2 * (discordant - drop)
    kind = rng.random(size)
    good = np.where(kind < drop, 1.0, np.where(kind < drop + flips, 0.5, 0.0))
    good[(kind >= drop + flips) & (kind < GOOD + flips / 2)] = 1.0
    bad = good * (1 - drop / GOOD) if moving else np.where(kind < drop, 0.0, good)

    def ask(request: ProbeRequest) -> Observation:
        rates = (good if request.position < culprit else bad)[request.offset :][: request.questions]
        right = rng.random(len(rates)) < rates
        return Observation.answers("".join("01"[int(r)] for r in right), offset=request.offset)

    return ask


def ours(culprit: int, rng: np.random.Generator, plan: Plan, **world: float) -> Trial:
    search = Search([str(i) for i in range(COMMITS)], plan)
    if plan.mode is Mode.PAIRED:
        moving = bool(world.get("moving"))
        subject = answer_sheet(culprit, rng, world["discordant"], moving)
    else:
        count = unpaired(culprit, rng, world.get("rho", 0.0))

        def subject(request: ProbeRequest) -> Observation:
            return Observation.counts(count(request.position, request.questions), request.questions)

    while not isinstance(request := search.next(), Result):
        search.record(request.position, subject(request))
    spent, claimed = request.spent, request.confidence
    return Trial(culprit, request.culprit, claimed, spent.questions, spent.probes, spent.switches)


def gate(culprit: int, rng: np.random.Generator, questions: int = 200) -> Trial:
    """Plain bisect: one run a commit, good if its score is at least half way up the drop."""
    ask, low, high, steps = unpaired(culprit, rng, 0.0), 0, COMMITS - 1, 0
    while high - low > 1:
        middle, steps = (low + high) // 2, steps + 1
        score = ask(middle, questions) / questions
        low, high = (middle, high) if score >= (GOOD + BAD) / 2 else (low, middle)
    return Trial(culprit, high, math.nan, (steps + 2) * questions, steps + 2, steps + 1)


def sprt(culprit: int, rng: np.random.Generator, ends: int = 200, batch: int = 50) -> Trial:
    """Plain bisect with Wald's test at each midpoint; it is told both true rates."""
    ask, low, high, steps = unpaired(culprit, rng, 0.0), 0, COMMITS - 1, 0
    a = 0.01 / math.log2(COMMITS - 1)
    limit = math.log((1 - a) / a)
    right, wrong = math.log(GOOD / BAD), math.log((1 - GOOD) / (1 - BAD))
    questions, probes = 2 * ends, 2
    while high - low > 1:
        middle, steps, score = (low + high) // 2, steps + 1, 0.0
        while abs(score) < limit:
            hits = ask(middle, batch)
            score += hits * right + (batch - hits) * wrong
            questions, probes = questions + batch, probes + 1
        low, high = (middle, high) if score > 0 else (low, middle)
    return Trial(culprit, high, 0.99, questions, probes, steps + 1)


def bayesect(culprit: int, rng: np.random.Generator, batch: int = 1) -> Trial:
    """git_bayesect's Bisector (index 0 is the newest commit), `batch` questions a selection."""
    from git_bayesect import Bisector

    ask, model = unpaired(culprit, rng, 0.0), Bisector([1.0] * COMMITS)
    questions = probes = switches = 0
    before: int | None = None
    while model.distribution.max() < 0.99 and questions < CAP // 2:
        index = model.select()
        hits = ask(COMMITS - 1 - index, batch)
        for i in range(batch):
            model.record(index, i < hits)
        switches += before is not None and before != index
        before, questions, probes = index, questions + batch, probes + 1
    best, claimed = int(model.distribution.argmax()), float(model.distribution.max())
    answer = COMMITS - 1 - best if claimed >= 0.99 else None
    return Trial(culprit, answer, claimed, questions, probes, switches)


def counts(switch: float = 2000, **more: object) -> Plan:
    budget, costs = Budget(questions=CAP), CostModel(switch=switch)
    return Plan(mode=Mode.COUNTS, costs=costs, budget=budget, **more)  # type: ignore[arg-type]


PAIRED = Plan(mode=Mode.PAIRED, budget=Budget(questions=CAP))
BASELINE = (5118, 6595)
"""Five earlier nights of 1319 questions at 0.776."""

CASES: dict[str, Callable[[int, np.random.Generator], Trial]] = {
    "unpaired, switch = 2000 questions": partial(ours, plan=counts()),
    "unpaired, switch = 500": partial(ours, plan=counts(500)),
    "unpaired, switch = 2000, baseline of 5 nights": partial(ours, plan=counts(baseline=BASELINE)),
    "unpaired, switch = 500, baseline of 5 nights": partial(
        ours, plan=counts(500, baseline=BASELINE)
    ),
    "over-dispersed (sd 0.011 a run), modelled": partial(
        ours, plan=counts(noise=Noise(run=RHO)), rho=RHO
    ),
    "over-dispersed, not modelled": partial(ours, plan=counts(), rho=RHO),
    "paired, 6 % discordant": partial(ours, plan=PAIRED, discordant=0.06),
    "paired, 10 % discordant": partial(ours, plan=PAIRED, discordant=0.10),
    "paired, 20 % discordant": partial(ours, plan=PAIRED, discordant=0.20),
    "paired, 10 %, other questions each run": partial(
        ours, plan=PAIRED, discordant=0.10, moving=1.0
    ),
    "plain bisect, 200-question gate": gate,
    "SPRT inside plain bisect, true rates given": sprt,
    "git_bayesect, 1 question a selection": bayesect,
    "git_bayesect, 50 questions a selection": partial(bayesect, batch=50),
}


def one(case: str, seed: int, number: int) -> Trial:
    """Trials of one number have the same culprit in every case."""
    culprit = int(np.random.default_rng([seed, number]).integers(1, COMMITS))
    return CASES[case](culprit, np.random.default_rng([seed, number, zlib.crc32(case.encode())]))


def wilson(hits: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    if trials == 0:
        return 0.0, 1.0
    p, d = hits / trials, 1 + z * z / trials
    middle = (p + z * z / (2 * trials)) / d
    half = z / d * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return middle - half, middle + half


def row(case: str, trials: list[Trial]) -> str:
    named = [t for t in trials if t.answer is not None]
    hits = sum(t.answer == t.culprit for t in named)
    low, high = wilson(hits, len(named))
    asked = np.array([t.questions for t in trials])
    claimed = float(np.mean([t.claimed for t in named])) if named else math.nan
    claim = "none" if math.isnan(claimed) else f"{claimed:.3f}"
    return (
        f"| {case} | {hits}/{len(trials)} | {len(trials) - len(named)} | {claim} "
        f"| {hits / max(len(named), 1):.3f} [{low:.3f}, {high:.3f}] | {asked.mean():,.0f} "
        f"| {np.median(asked):,.0f} | {np.mean([t.probes for t in trials]):.1f} "
        f"| {np.mean([t.switches for t in trials]):.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="cases that contain this text")
    options = parser.parse_args()
    print(
        "| method | right | no culprit | mean claim | right of named [95 %] | questions "
        "| median | probes | switches |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    started = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for case in CASES:
            if options.only not in case:
                continue
            try:
                work = partial(one, case, options.seed)
                print(row(case, list(pool.map(work, range(options.trials)))), flush=True)
            except ImportError as error:
                print(f"| {case} | not measured: {error} |", flush=True)
    print(
        f"\n{options.trials} trials a row, seed {options.seed}, "
        f"{time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
