"""How the search narrowed: each probe that ended, and what was still possible after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolbisect.bisection.journal import Record
from poolbisect.bisection.lines import Ended, Started, to_events
from poolbisect.bisection.outcome import Observation
from poolbisect.bisection.plan import Mode
from poolbisect.bisection.posterior import credible_range
from poolbisect.bisection.search import Search

_SHOWN = 0.999
"""Posterior mass of the range that is called open."""


@dataclass(frozen=True, slots=True)
class Step:
    """One probe. After it the step lies in `low`..`high` (inclusive positions; all but 1 in 1,000
    of the posterior unless the probe is certain), `remaining` commits, the likeliest of which has
    `mass`. `questions`: asked
    for; `attempt`: the number of its folder, None where none was kept."""

    number: int
    position: int
    reason: str
    questions: int
    observation: Observation
    low: int
    high: int
    remaining: int
    mass: float
    attempt: int | None


def steps(record: Record, names: Sequence[str]) -> list[Step]:
    """Replay a session, one step for each probe that ended."""
    search = Search(names, record.header.plan)
    found: list[Step] = []
    started: Started | None = None
    for line in record.lines:
        for event in to_events(line):
            search.apply(event)
        if isinstance(line, Started):
            started = line
        if isinstance(line, Ended):
            asked = started if started and started.position == line.position else None
            found.append(
                step_after(
                    search,
                    len(found) + 1,
                    line.position,
                    line.observation,
                    asked.reason if asked else "recorded",
                    asked.questions if asked else line.observation.asked,
                    asked.attempt or None if asked else None,
                )
            )
            started = None
    return found


def step_after(
    search: Search,
    number: int,
    position: int,
    observation: Observation,
    reason: str,
    questions: int,
    attempt: int | None,
) -> Step:
    """The step that has just been recorded in `search`."""
    distribution = search.distribution()
    exact = search.plan.mode is Mode.EXACT
    low, high = credible_range(distribution, 1.0 if exact else _SHOWN)
    inside = distribution[low : high + 1]
    return Step(
        number,
        position,
        reason,
        questions,
        observation,
        low,
        high,
        int(np.count_nonzero(inside > 0)),
        float(inside.max()),
        attempt,
    )
