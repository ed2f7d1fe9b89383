"""The contract probe on positions of a history: milliseconds each, no model is run."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.outcome import Ending, Observation, ProbeRequest, Verdict
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.culprit.interface import Attempt, Probed, Watch
from poolbisect.errors import InfrastructureError, NotApplicableError
from poolbisect.history.ranges import HistoryRange
from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.facets import (
    REQ_TO_TOKEN,
    BufferState,
    Condition,
    ContractState,
    PoolPlan,
    PoolState,
)
from poolbisect.probes.sandbox import Limits, Sandbox
from poolbisect.scenario import Scenario, Symptom
from poolbisect.timeline.plans import plans_for

_PRICE = CostModel(switch=0, probe=1)
_ENDINGS = {
    Condition.CRASHED: Ending.CRASHED,
    Condition.TIMED_OUT: Ending.TIMED_OUT,
    Condition.UNTESTABLE: Ending.UNTESTABLE,
}


class ContractHistoryProbe:
    """Bad: a buffer of the scenario has no row for a slot that the pool hands out."""

    name = "contract"

    def __init__(
        self, history: HistoryRange, scenario: Scenario, limits: Limits | None = None
    ) -> None:
        self._history = history
        self._plans = plans_for(scenario)
        self._crash = scenario.symptom is Symptom.CRASH
        self._sandbox = Sandbox(limits)
        self._sandbox.start()

    def plan(self) -> Plan:
        return Plan(mode=Mode.EXACT, costs=_PRICE, crash_is_bad=self._crash)

    def probe(self, request: ProbeRequest, attempt: Attempt, watch: Watch) -> Probed:
        watch("contract")
        return probed_tree(self._history, request.position, self.probe_tree)

    def probe_tree(self, tree: SourceTree) -> Probed:
        """Any state of the sources, whether or not it is a position."""
        clock = time.perf_counter()
        state = self._sandbox.probe(tree, self._plans)
        observation = observe(state, time.perf_counter() - clock)
        evidence = {"contract": msgspec.to_builtins(state.pools), "detail": observation.note}
        return Probed(observation, evidence)

    def close(self) -> None:
        self._sandbox.close()

    @property
    def plans(self) -> tuple[PoolPlan, ...]:
        return self._plans


def probed_tree(
    history: HistoryRange, position: int, probe: Callable[[SourceTree], Probed]
) -> Probed:
    """Probe a position's sources; what cannot be had of them is an ending."""
    try:
        return probe(history.tree(position))
    except NotApplicableError as error:
        return Probed(Observation.failed(Ending.UNTESTABLE, note=str(error)))
    except InfrastructureError as error:
        return Probed(Observation.failed(Ending.INFRA, note=str(error)))


def observe(state: ContractState, seconds: float = 0.0) -> Observation:
    """A short buffer is bad whatever else there is; what could not be judged is not good.

    A buffer that is not there breaks nothing; sources without the pool cannot be asked.
    """
    found: dict[Condition, list[str]] = {condition: [] for condition in Condition}
    for kind, pool in state.pools.items():
        if pool.condition is not Condition.OK:
            absent = pool.condition is Condition.ABSENT
            where = found[Condition.UNTESTABLE if absent else pool.condition]
            where.append(f"no {kind.value} request pool: {pool.detail}")
        for name, buffer in pool.buffers.items():
            found[buffer.condition].append(_words(name, buffer))

    def note(*conditions: Condition) -> str:
        return "; ".join(words for condition in conditions for words in found[condition])

    if found[Condition.SHORT]:
        return Observation.judged(Verdict.BAD, seconds=seconds, note=note(Condition.SHORT))
    for condition, ending in _ENDINGS.items():
        if found[condition]:
            return Observation.failed(ending, seconds=seconds, note=note(condition))
    words = note(Condition.OK, Condition.ABSENT)
    return Observation.judged(Verdict.GOOD, seconds=seconds, note=words)


def _words(name: str, buffer: BufferState) -> str:
    if buffer.condition is Condition.ABSENT:
        return f"there is no {name}"
    if buffer.rows is None:
        return f"{name}: {buffer.detail}"
    fits = f"short by {buffer.missing}" if buffer.missing else "ok"
    return f"{name} has {buffer.rows} rows for slots up to {buffer.last}: {fits}"


def faults(state: ContractState) -> set[tuple[str, str]]:
    """The pools and buffers at fault, the pool itself as its own table."""
    found = set()
    for kind, pool in state.pools.items():
        if _is_fault(pool):
            found.add((kind.value, REQ_TO_TOKEN))
        found |= {(kind.value, name) for name, b in pool.buffers.items() if b.condition.is_fault}
    return found


def _is_fault(pool: PoolState) -> bool:
    return pool.condition is Condition.CRASHED
