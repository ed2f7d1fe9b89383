"""Look at a subject's pools before anything is served on them: milliseconds, no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poolbisect.engine.config import EngineConfig
from poolbisect.errors import NotApplicableError, PoolbisectError
from poolbisect.measurement import Ended
from poolbisect.pools.coverage import last_slot_use
from poolbisect.pools.interface import SubjectPools
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.upstream.faults import StubGap, SubjectFault
from poolbisect.probes.contract import BufferContract, contracts
from poolbisect.probes.miniature import engine_config
from poolbisect.scenario import Scenario

_CONTEXT = 8  # columns of req_to_token; nothing asked here depends on them


@dataclass(frozen=True, slots=True)
class Inspection:
    """The contracts of a subject's buffers, or how and why asking for them ended otherwise.

    `questions_to_last_slot` is how many questions a run needs until every rank has used its last
    slot, None if no number does.
    """

    contracts: tuple[BufferContract, ...] = ()
    questions_to_last_slot: int | None = None
    ended: Ended = Ended.MEASURED
    detail: str = ""


def inspect_pools(load: Callable[[], SubjectPools], scenario: Scenario) -> Inspection:
    """Make the scenario's pools from the code that `load` gives.

    What the code does wrong, lacks, or asks of us in vain is an ending, not an error.

    Raises:
        UsageError: the engine cannot serve such a scenario.
        InfrastructureError: out of memory.
    """
    config = engine_config(scenario.engine, scenario.memory, scenario.workload)
    try:
        return _inspected(load(), scenario, config)
    except (NotApplicableError, StubGap, SubjectFault) as error:
        return Inspection(ended=ending_of(error), detail=str(error))


def ending_of(error: PoolbisectError) -> Ended:
    """How a measurement ends that the code under test did not get through; INFRA if it is not
    that code's doing."""
    if isinstance(error, NotApplicableError):
        return Ended.NOT_APPLICABLE
    if isinstance(error, StubGap):
        return Ended.BUILD_FAILED
    return Ended.CRASHED if isinstance(error, SubjectFault) else Ended.INFRA


def _inspected(pools: SubjectPools, scenario: Scenario, config: EngineConfig) -> Inspection:
    slots, pre_alloc = config.slots_per_rank, config.pre_alloc_size
    mamba = None
    if config.max_mamba_cache_size is not None:
        mamba = MambaSizing(
            config.mamba_slots_per_rank,
            config.mamba_extra_buffer,
            not config.disable_overlap_schedule,
        )
    found = contracts(pools, scenario.buffers, slots, pre_alloc, mamba)
    pool = pools.make_pool(slots, _CONTEXT, "cpu", pre_alloc)
    in_flight = slots + (pre_alloc or 0)
    if mamba is not None:
        in_flight = min(in_flight, mamba.size // mamba.slots_per_request)
    first = last_slot_use(pool, max(1, in_flight), 4 * in_flight + 4 * slots).first_request
    return Inspection(found, None if first is None else first * config.dp_size)
