"""Scenarios name the pool and the sizes their contract is judged at."""

from __future__ import annotations

import pytest

from poolbisect.pools.interface import HIDDEN_STATES, MAMBA_MAPPINGS, TOKEN_TABLE
from poolbisect.probes.facets import PoolKind
from poolbisect.scenario import load_scenario, scenario_names
from poolbisect.timeline import every_plan, plans, plans_for


def test_buffers_have_the_names_that_pools_and_engine_use() -> None:
    assert (plans.HIDDEN_STATES, plans.TOKEN_TABLE) == (HIDDEN_STATES, TOKEN_TABLE)
    assert plans.MAMBA_MAPPINGS == MAMBA_MAPPINGS


def test_everything_is_every_kind_of_pool_once() -> None:
    assert [plan.kind for plan in every_plan()] == list(PoolKind)


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_has_a_plan_with_its_buffers(name: str) -> None:
    scenario = load_scenario(name)
    (plan,) = plans_for(scenario)
    assert list(plan.buffers) == scenario.buffers
    assert plan.size * scenario.engine.dp_size <= scenario.engine.max_running_requests


def test_the_mimo_canary_is_a_rank_of_64_slots() -> None:
    (plan,) = plans_for(load_scenario("mimo-canary"))
    assert (plan.kind, plan.size, plan.pre_alloc_size) == (PoolKind.NORMAL, 64, None)


def test_the_mamba_canary_has_fewer_mamba_slots_than_request_slots() -> None:
    (plan,) = plans_for(load_scenario("mamba-canary"))
    assert plan.kind is PoolKind.HYBRID
    assert plan.mamba_size is not None
    assert plan.mamba_size < plan.size
    assert plan.extra_buffer


def test_the_pd_canary_is_a_decode_rank() -> None:
    (plan,) = plans_for(load_scenario("pd-mamba-canary"))
    assert plan.kind is PoolKind.HYBRID_PD_DECODE
    assert plan.pre_alloc_size is not None
