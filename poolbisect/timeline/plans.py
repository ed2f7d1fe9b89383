"""What the contract probe is asked: every pool and buffer there is, or those of a scenario."""

from __future__ import annotations

from poolbisect.probes.facets import PoolKind, PoolPlan
from poolbisect.scenario import Scenario

HIDDEN_STATES = "req_to_hidden_states_pool"
TOKEN_TABLE = "token_table"
MAMBA_MAPPINGS = (
    "req_index_to_mamba_index_mapping",
    "req_index_to_mamba_ping_pong_track_buffer_mapping",
)

_CONSUMERS = (HIDDEN_STATES, TOKEN_TABLE)
# A colocated rank as the MiMo test has it, and a decode rank with what upstream adds to 32 slots;
# mamba pools smaller than the slots, for only there do the two sizes tell apart.
_SLOTS, _DECODE_SLOTS, _PRE_ALLOC, _MAMBA = 64, 32, 64, 32


def every_plan() -> tuple[PoolPlan, ...]:
    """Every kind of pool with every buffer that has been found to be at fault."""
    return (
        PoolPlan(PoolKind.NORMAL, _SLOTS, _CONSUMERS),
        PoolPlan(PoolKind.PD_DECODE, _DECODE_SLOTS, _CONSUMERS, _PRE_ALLOC),
        PoolPlan(PoolKind.HYBRID, _SLOTS, MAMBA_MAPPINGS, None, _MAMBA, True),
        PoolPlan(
            PoolKind.HYBRID_PD_DECODE, _DECODE_SLOTS, MAMBA_MAPPINGS, _PRE_ALLOC, _MAMBA, True
        ),
    )


def plans_for(scenario: Scenario) -> tuple[PoolPlan, ...]:
    """The pool of one rank of a scenario's server, with the scenario's buffers."""
    engine = scenario.engine
    decode = engine.disaggregation_mode == "decode"
    slots = max(1, engine.max_running_requests // engine.dp_size)
    pre_alloc = scenario.memory.pre_alloc_size if decode else None
    buffers = tuple(scenario.buffers)
    if engine.max_mamba_cache_size is None:
        kind = PoolKind.PD_DECODE if decode else PoolKind.NORMAL
        return (PoolPlan(kind, slots, buffers, pre_alloc),)
    return (
        PoolPlan(
            PoolKind.HYBRID_PD_DECODE if decode else PoolKind.HYBRID,
            slots,
            buffers,
            pre_alloc,
            max(1, engine.max_mamba_cache_size // engine.dp_size),
            engine.mamba_scheduler_strategy == "extra_buffer",
        ),
    )
