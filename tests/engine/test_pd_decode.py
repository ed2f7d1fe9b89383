"""PD decode instances: more request slots than may run at once, and buffers that know or do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import nn

from poolbisect.engine.config import Behind, MappingAccess
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Request
from poolbisect.errors import UsageError
from poolbisect.models.loading import load_hybrid, load_mimo
from poolbisect.pools.interface import HIDDEN_STATES, MAMBA_MAPPING
from poolbisect.pools.leak_check import leaked_slots
from poolbisect.pools.shipped import ShippedPools

Answered = Callable[..., tuple[list[Request], Engine]]
EAGLE = {"speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
RUNNING = 4  # on each rank


@pytest.fixture(scope="module")
def mimo() -> nn.Module:
    return load_mimo()


@pytest.fixture(scope="module")
def hybrid() -> nn.Module:
    return load_hybrid()


def outputs(asked: list[Request]) -> list[list[int]]:
    return [request.output for request in asked]


@pytest.mark.parametrize("dp_size", [1, 2])
@pytest.mark.parametrize("pre_alloc", [0, 4])
@pytest.mark.parametrize("speculation", [{}, EAGLE], ids=["plain", "eagle"])
def test_a_decode_instance_answers_as_a_plain_server_does(
    mimo: nn.Module,
    answered: Answered,
    speculation: dict[str, object],
    pre_alloc: int,
    dp_size: int,
) -> None:
    settings = {"dp_size": dp_size, "max_running_requests": RUNNING * dp_size, **speculation}
    pools = ShippedPools("corrected")
    plain, _ = answered(mimo, pools, 30, **settings)
    running: list[int] = []
    held: list[int] = []

    def watch(engine: Engine) -> None:
        running.extend(len(rank.running) for rank in engine.ranks)
        held.extend(len(rank.slots.owners) for rank in engine.ranks)

    decoded, engine = answered(mimo, pools, 30, pre_alloc_size=pre_alloc, watch=watch, **settings)
    assert outputs(decoded) == outputs(plain)
    assert max(running) == RUNNING
    assert max(held) == RUNNING + pre_alloc
    for rank in engine.ranks:
        assert rank.slots.used == set(range(1, RUNNING + pre_alloc + 1))
        assert leaked_slots(rank.pool) == 0
        assert not rank.slots.owners
        assert not rank.transferred
        assert not rank.future.space.owners
        assert sorted(rank.allocator.free) == list(range(1, rank.allocator.pages + 1))
        assert rank.guard.reads + rank.guard.writes == 0


@pytest.mark.parametrize("pre_alloc", [0, 4])
@pytest.mark.parametrize("state", ["corrected", "original"])
def test_a_hybrid_decode_instance_answers_as_a_plain_server_does(
    hybrid: nn.Module, answered: Answered, state: str, pre_alloc: int
) -> None:
    settings = {"dp_size": 2, "max_running_requests": 8, "max_mamba_cache_size": 8}
    plain, _ = answered(hybrid, ShippedPools("corrected", "mamba"), 30, **settings)
    decoded, engine = answered(
        hybrid,
        ShippedPools(state, "pd-mamba"),
        30,
        pre_alloc_size=pre_alloc,
        mapping_access=MappingAccess.UNCHECKED,
        behind_hidden_states=Behind.NOTHING,
        **settings,
    )
    short = {(MAMBA_MAPPING, slot) for slot in range(RUNNING, RUNNING + pre_alloc)}
    for rank in engine.ranks:
        # `original` has as few mamba slots as rows, so no more requests are admitted at once.
        assert rank.slots.used == set(range(RUNNING + pre_alloc))
        assert set(rank.guard.tallies) == (short if state == "original" else set())
    if state == "corrected" or not pre_alloc:
        assert outputs(decoded) == outputs(plain)


def test_checked_access_dies_at_the_first_pre_allocated_slot(
    hybrid: nn.Module, answered: Answered
) -> None:
    """Case A3, smaller: the failing slot is the number of requests that may run on a rank."""
    settings = {
        "dp_size": 2,
        "max_running_requests": 8,
        "max_mamba_cache_size": 8,
        "mapping_access": MappingAccess.CHECKED,
    }
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        answered(hybrid, ShippedPools("original", "pd-mamba"), 30, pre_alloc_size=4, **settings)
    answered(hybrid, ShippedPools("original", "pd-mamba"), 30, pre_alloc_size=0, **settings)
    answered(hybrid, ShippedPools("corrected", "pd-mamba"), 30, pre_alloc_size=4, **settings)


@pytest.mark.parametrize(
    ("state", "first", "last"), [("unpadded", 0, 7), ("original", 1, 8), ("corrected", 1, 8)]
)
def test_the_hidden_states_pool_is_short_of_every_slot_from_size_on(
    mimo: nn.Module, answered: Answered, state: str, first: int, last: int
) -> None:
    asked, engine = answered(
        mimo,
        ShippedPools(state),
        40,
        dp_size=2,
        max_running_requests=8,
        pre_alloc_size=4,
        behind_hidden_states=Behind.NOTHING,
        **EAGLE,
    )
    beyond = range(RUNNING, last + 1) if state != "corrected" else range(0)
    for rank in engine.ranks:
        assert (rank.slots.first, rank.slots.last) == (first, last)
        assert set(rank.guard.tallies) == {(HIDDEN_STATES, slot) for slot in beyond}
        mine = [request for request in asked[rank.number :: 2] if request.slot_held in beyond]
        assert rank.guard.offenders == {request.id for request in mine}


def test_pre_alloc_0_is_a_decode_pool_without_extra_slots(
    mimo: nn.Module, answered: Answered
) -> None:
    _, engine = answered(
        mimo, ShippedPools("unpadded"), 20, dp_size=1, max_running_requests=4, pre_alloc_size=0,
        **EAGLE,
    )  # fmt: skip
    assert engine.ranks[0].slots.used == set(range(4))
    assert engine.ranks[0].guard.reads + engine.ranks[0].guard.writes == 0


def test_a_negative_pre_allocation_is_refused(mimo: nn.Module, answered: Answered) -> None:
    with pytest.raises(UsageError, match="pre-alloc-size must not be negative, not -1"):
        answered(mimo, ShippedPools("corrected"), 2, pre_alloc_size=-1)
