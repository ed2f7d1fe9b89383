"""What the child process does with a scenario and the sources under test: inspect, and serve.

Runs inside `poolbisect.probes.sandbox_child` only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from poolbisect.engine.engine import Engine
from poolbisect.errors import InfrastructureError, NotApplicableError
from poolbisect.history.source_tree import SourceTree
from poolbisect.measurement import Ended, Measurement, MemoryEvents
from poolbisect.memory.host_heap import keep_freed_memory
from poolbisect.models.loading import LoadedModel, load_model
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.upstream import StubGap, SubjectFault, load_upstream
from poolbisect.probes.inspection import ending_of, inspect_pools
from poolbisect.probes.miniature import Settings, Tick, engine_config, measure
from poolbisect.probes.sandbox_messages import (
    Answer,
    BufferRows,
    Fault,
    Inspect,
    Inspected,
    Refused,
    Serve,
    Served,
)
from poolbisect.probes.upstream_pools import UpstreamPools
from poolbisect.scenario import Scenario
from poolbisect.tasks.arithmetic import Problem
from poolbisect.tasks.problem_set import load_problems

_ALLOCATION_FAILED = "can't allocate memory"  # how PyTorch's CPU allocator words it

OnTick = Callable[[int, int, int, float], None]
"""Called with questions done, those right, tokens and seconds; raises KeyboardInterrupt to stop."""


@dataclass(frozen=True, slots=True)
class Workbench:
    """Everything a run needs beside the sources; `reserved` is the engine's own bytes on them."""

    model: LoadedModel
    problems: Sequence[Problem]
    settings: Settings
    reserved: int


def workbench(asked: Serve) -> Workbench:
    """Load what serving needs. UsageError when there is no such model, problem or engine."""
    keep_freed_memory()
    problems = load_problems(asked.scenario.workload.task, asked.first + asked.count)
    settings = Settings(asked.memory, asked.device, asked.seed)
    model = _model(asked.scenario.workload.model)
    reserved = _reserved(msgspec.json.encode(asked.scenario), asked.device)
    return Workbench(model, problems[asked.first :], settings, reserved)


def inspected(tree: SourceTree, asked: Inspect) -> Inspected:
    """The contracts of the scenario's buffers in the sources."""
    try:
        found = inspect_pools(lambda: UpstreamPools(load_upstream(tree)), asked.scenario)
    except InfrastructureError as error:
        # Memory is limited for the sources alone, so running out of it is theirs.
        return Inspected(ended=Ended.CRASHED, detail=f"{tree.name} itself fails: {error}")
    rows = tuple(BufferRows(c.buffer, c.space, c.rows, c.first, c.last) for c in found.contracts)
    return Inspected(rows, found.questions_to_last_slot, found.ended, found.detail)


def served(tree: SourceTree, asked: Serve, bench: Workbench, on_tick: OnTick) -> Answer:
    """The measurement of the sources' pools; what they do wrong is how it ended."""
    stopped = False

    def watch(tick: Tick) -> None:
        nonlocal stopped
        try:
            on_tick(tick.done, tick.right, tick.tokens, tick.seconds)
        except KeyboardInterrupt:
            stopped = True
            raise

    try:
        pools = UpstreamPools(load_upstream(tree))
        measurement = measure(
            asked.subject, pools, asked.scenario, bench.problems, bench.model, bench.settings, watch
        )
    except (NotApplicableError, StubGap, SubjectFault) as error:
        return Served(_unserved(asked, ending_of(error), str(error)))
    except InfrastructureError as error:
        # Pools of ours have just fitted into the same memory, so it is theirs that do not.
        detail = f"{tree.name} itself fails: {error}"
        return Served(_unserved(asked, Ended.CRASHED, detail))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and _ALLOCATION_FAILED not in str(error):
            raise
        return Refused(Fault.HOST, "the engine ran out of memory outside of the sources under test")
    if measurement.ended is Ended.PARTIAL and not stopped:
        detail = f"{tree.name} itself fails: it raises KeyboardInterrupt."
        measurement = replace(measurement, ended=Ended.CRASHED, detail=detail)
    return Served(measurement)


def _unserved(asked: Serve, ended: Ended, detail: str) -> Measurement:
    nothing = MemoryEvents(watched=False)
    return Measurement(asked.subject, ended, detail, asked.count, (), None, None, nothing, 0.0, 0)


@functools.cache
def _model(name: str) -> LoadedModel:
    return load_model(name)


@functools.cache
def _reserved(scenario: bytes, device: str) -> int:
    """Host memory in bytes that the engine keeps for a scenario (JSON) on pools of ours.

    Building it also loads whatever the device needs. UsageError when the engine cannot be built.
    """
    asked = msgspec.json.decode(scenario, type=Scenario)
    engine = Engine(
        engine_config(asked.engine, asked.memory, asked.workload),
        _model(asked.workload.model).model,
        ShippedPools("corrected", asked.pools),
        device=device,
    )
    arenas = sum(rank.arena.capacity for rank in engine.ranks)
    return arenas if device == "cpu" else 0
