"""Simulated subjects: what a probe at a position would report."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poolbisect.bisection.outcome import Ending, Observation, ProbeRequest, Result, Verdict
from poolbisect.bisection.plan import Plan
from poolbisect.bisection.search import Search

Subject = Callable[[ProbeRequest], Observation]


def names(commits: int) -> list[str]:
    return [f"c{i}" for i in range(commits)]


def run(search: Search, subject: Subject, limit: int = 500) -> Result:
    """Probe until there is an answer."""
    for _ in range(limit):
        asked = search.next()
        if isinstance(asked, Result):
            return asked
        search.record(asked.position, subject(asked))
    raise AssertionError(f"no answer after {limit} probes")


def bisect(commits: int, plan: Plan, subject: Subject) -> Result:
    return run(Search(names(commits), plan), subject)


def step(culprit: int, broken: frozenset[int] = frozenset(), *, fixed: bool = False) -> Subject:
    """Exact verdicts: bad from `culprit` on (or good from it on); `broken` do not build."""

    def probe(request: ProbeRequest) -> Observation:
        if request.position in broken:
            return Observation.failed(Ending.BUILD_FAILED)
        new = request.position >= culprit
        return Observation.judged(Verdict.BAD if new != fixed else Verdict.GOOD)

    return probe


def scores(rates: np.ndarray, seed: int) -> Subject:
    """Counts drawn with each position's rate."""
    rng = np.random.default_rng(seed)

    def probe(request: ProbeRequest) -> Observation:
        right = int(rng.binomial(request.questions, rates[request.position]))
        return Observation.counts(right, request.questions)

    return probe


def verdicts(rates: np.ndarray, seed: int) -> Subject:
    """Good with each position's rate, anew every time."""
    rng = np.random.default_rng(seed)

    def probe(request: ProbeRequest) -> Observation:
        good = rng.random() < rates[request.position]
        return Observation.judged(Verdict.GOOD if good else Verdict.BAD)

    return probe


def questions(culprit: int, seed: int, *, size: int = 4000) -> Subject:
    """The same questions everywhere: 5.6 % are lost at the culprit, 8.8 % are coin flips."""
    rng = np.random.default_rng(seed)
    kind = rng.random(size)
    old = np.select([kind < 0.056, kind < 0.144], [1.0, 0.5], np.where(kind < 0.82, 1.0, 0.0))
    new = np.where(kind < 0.056, 0.0, old)

    def probe(request: ProbeRequest) -> Observation:
        rates = new if request.position >= culprit else old
        chosen = rates[request.offset : request.offset + request.questions]
        right = rng.random(len(chosen)) < chosen
        return Observation.answers("".join("01"[int(x)] for x in right), offset=request.offset)

    return probe


def level(commits: int, *changes: tuple[int, float]) -> np.ndarray:
    """Rates by position: each change sets the rate from its position on."""
    rates = np.zeros(commits)
    for position, rate in changes:
        rates[position:] = rate
    return rates
