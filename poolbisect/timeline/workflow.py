"""The workflow of `poolbisect timeline`: judge every position, compare neighbours."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from poolbisect.history.ranges import Entry, HistoryRange
from poolbisect.probes.facets import ContractState, PoolPlan
from poolbisect.probes.sandbox import Limits
from poolbisect.timeline.plans import every_plan
from poolbisect.timeline.probers import Probers, Watch
from poolbisect.timeline.survey import survey
from poolbisect.timeline.transitions import Transition, transitions

_MOST_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened in a range. `states` has one entry a position, oldest first.

    `touched`: positions that change a source that matters. `probed`: states that were computed,
    every other one being equal to one of them. `untestable`: positions that could not be judged in
    full, and why.
    """

    history: HistoryRange
    plans: tuple[PoolPlan, ...]
    states: tuple[ContractState, ...]
    touched: frozenset[int]
    transitions: tuple[Transition, ...]
    untestable: dict[int, str]
    probed: int
    seconds: float

    def entry(self, position: int) -> Entry:
        return self.history.entries[position]


def timeline(
    history: HistoryRange,
    plans: tuple[PoolPlan, ...] | None = None,
    *,
    workers: int | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
) -> Timeline:
    """Every transition of the pools and buffers of `plans` (by default all) in a range.

    Raises:
        InfrastructureError: the repository or a release cannot be read, or no child process can
            be started.
    """
    clock = time.perf_counter()
    asked = every_plan() if plans is None else plans
    count = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
    with Probers(asked, count, limits, watch) as probers:
        seen = survey(history, probers)
        probed = probers.probed
    inside = seen.states[: len(history)]
    reasons = {position: state.untestable for position, state in enumerate(inside)}
    return Timeline(
        history=history,
        plans=asked,
        states=inside,
        touched=seen.touched,
        transitions=tuple(transitions(seen.states, history.parents, len(history))),
        untestable={position: reason for position, reason in reasons.items() if reason},
        probed=probed,
        seconds=time.perf_counter() - clock,
    )
