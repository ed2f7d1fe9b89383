"""The shipped hybrid pools: what they hand out, how long their mappings are, what they do then."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from poolbisect.errors import UsageError
from poolbisect.pools import (
    mamba_by_slot,
    mamba_corrected,
    mamba_decode_max,
    mamba_decode_min,
    mamba_padded,
)
from poolbisect.pools.interface import MAMBA_MAPPINGS, HybridRequestPool
from poolbisect.pools.mamba_pool import MambaPool, MambaShortageError
from poolbisect.pools.shipped import FAMILIES, ShippedPools
from poolbisect.pools.slots import PoolMisuseError

EVERY_STATE = [(family, state) for family, states in FAMILIES.items() for state in states]
every_state = pytest.mark.parametrize(("family", "state"), EVERY_STATE)
MakeRequests = Callable[[int], list[Any]]


def make_pool(
    family: str, state: str, size: int, mamba_size: int, **more: Any
) -> HybridRequestPool:
    return ShippedPools(state, family).make_hybrid_pool(
        size, 4, "cpu", mamba_size=mamba_size, **more
    )


def serve(pool: HybridRequestPool, requests: list[Any]) -> list[int]:
    """The request slots of requests that run one after the other."""
    served = []
    for req in requests:
        slots = pool.alloc([req])
        assert slots is not None
        served += slots
        pool.free_mamba_cache(req)
        pool.free(req)
    return served


def test_a_mamba_pool_keeps_row_0_for_padding() -> None:
    pool = MambaPool(3)
    assert (pool.size, pool.rows, pool.free_slots) == (3, 4, [1, 2, 3])
    assert pool.alloc(4) is None
    assert pool.alloc(2) == [1, 2]
    pool.free([2])
    assert (pool.free_slots, pool.available_size()) == ([3, 2], 2)
    pool.clear()
    assert pool.free_slots == [1, 2, 3]
    assert (MambaPool(3, first_slot=0).free_slots, MambaPool(3, first_slot=0).rows) == (
        [0, 1, 2],
        4,
    )


@pytest.mark.parametrize("name", ["mamba", "pd-mamba", "padding"])
def test_every_family_has_an_original_and_a_corrected_state(name: str) -> None:
    assert {"original", "corrected"} <= FAMILIES[name].keys()


def test_an_unknown_family_or_state_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing"):
        ShippedPools("original", "nothing")
    with pytest.raises(UsageError, match=r"family mamba.*'unpadded'"):
        ShippedPools("unpadded", "mamba")


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (mamba_decode_min, mamba_decode_max, 2),
        (mamba_decode_max, mamba_by_slot, 2),
        (mamba_by_slot, mamba_padded, 1),
        (mamba_padded, mamba_corrected, 1),
    ],
)
def test_two_states_differ_by_upstreams_change_and_in_words(
    before: ModuleType, after: ModuleType, changed: int
) -> None:
    def code(module: ModuleType) -> list[str]:
        lines = [line.strip() for line in inspect.getsource(module).splitlines()]
        return [line for line in lines if line and not line.startswith('"""')]

    differing = [
        line for line in difflib.ndiff(code(before), code(after)) if line.startswith(("+ ", "- "))
    ]
    assert sum(line.startswith("+ ") for line in differing) == changed


@pytest.mark.parametrize("extra_buffer", [False, True])
def test_a2_mappings_as_long_as_a_smaller_mamba_pool_raise_from_there_on(
    extra_buffer: bool, new_requests: MakeRequests
) -> None:
    pool = make_pool("mamba", "original", 8, 3, extra_buffer=extra_buffer)
    assert pool.free_slots == list(range(8))
    assert pool.req_index_to_mamba_index_mapping.shape == (3,)
    assert serve(pool, new_requests(3)) == [0, 1, 2]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        pool.alloc(new_requests(1))


@pytest.mark.parametrize(("family", "state"), [("mamba", "corrected"), ("mamba", "padded")])
def test_a2_mappings_as_long_as_the_request_slots_hold_any_of_them(
    family: str, state: str, new_requests: MakeRequests
) -> None:
    pool = make_pool(family, state, 8, 3, extra_buffer=True)
    first = min(pool.free_slots)
    served = serve(pool, new_requests(20))
    assert served == [first + number % 8 for number in range(20)]
    assert sorted(pool.mamba_pool.free_slots) == [1, 2, 3]


@pytest.mark.parametrize("mamba_size", [8, 9])
def test_a2_with_as_many_mamba_slots_as_requests_the_original_is_clean(
    mamba_size: int, new_requests: MakeRequests
) -> None:
    pool = make_pool("mamba", "original", 8, mamba_size)
    assert max(serve(pool, new_requests(20))) == 7


def test_a3_pd_decode_raises_at_the_first_slot_past_its_mamba_size(
    new_requests: MakeRequests,
) -> None:
    pool = make_pool("pd-mamba", "original", 32, 32, pre_alloc_size=32)
    assert pool.mamba_pool.size == pool.req_index_to_mamba_index_mapping.shape[0] == 32
    assert max(pool.free_slots) == 63
    assert serve(pool, new_requests(32)) == list(range(32))
    with pytest.raises(IndexError, match="index 32 is out of bounds for dimension 0 with size 32"):
        pool.alloc(new_requests(1))


def test_a3_pd_decode_with_the_larger_size_serves_every_slot(new_requests: MakeRequests) -> None:
    pool = make_pool("pd-mamba", "corrected", 32, 32, pre_alloc_size=32)
    assert max(serve(pool, new_requests(130))) == 63


@pytest.mark.parametrize(
    ("family", "state", "effective"),
    [
        ("mamba", "unreserved", 6),
        ("pd-mamba", "added", 5),
        ("pd-mamba", "original", 3),
        ("pd-mamba", "corrected", 18),
        ("padding", "corrected", 18),
    ],
)
def test_mamba_slots_of_a_pd_decode_instance(family: str, state: str, effective: int) -> None:
    """4 request slots, 2 pre-allocated, 3 mamba slots asked for, 3 a request."""
    pool = make_pool(family, state, 4, 3, pre_alloc_size=2, extra_buffer=True)
    assert pool.mamba_pool.size == pool.mamba_pool.available_size() == effective


@every_state
@pytest.mark.parametrize("pre_alloc_size", [None, 0])
@pytest.mark.parametrize(("overlap", "width"), [(True, 2), (False, 1)])
def test_a4_the_smallest_pools(
    family: str, state: str, pre_alloc_size: int | None, overlap: bool, width: int,
    new_requests: MakeRequests,
) -> None:  # fmt: skip
    """One request slot and the mamba slots of one request: always the last slot, never short."""
    pool = make_pool(
        family, state, 1, 3, pre_alloc_size=pre_alloc_size, extra_buffer=True, overlap=overlap
    )
    plain = make_pool(family, state, 1, 1, pre_alloc_size=pre_alloc_size)
    assert pool.req_index_to_mamba_ping_pong_track_buffer_mapping.shape[1] == width
    assert not hasattr(plain, MAMBA_MAPPINGS[1])
    last = max(plain.free_slots)
    assert serve(plain, new_requests(5)) == [last] * 5
    if plain.mamba_pool.size < 1 + width and state in ("unreserved", "original", "added"):
        return  # these states do not give a PD decode instance the ping-pong slots it needs
    if pool.mamba_pool.size >= 1 + width:
        assert serve(pool, new_requests(5)) == [last] * 5


@every_state
def test_the_mappings_name_what_each_request_holds(
    family: str, state: str, new_requests: MakeRequests
) -> None:
    pool = make_pool(family, state, 4, 12, extra_buffer=True)
    requests = new_requests(4)
    slots = pool.alloc(requests)
    assert slots is not None
    held = [req.mamba_pool_idx for req in requests]
    assert pool.get_mamba_indices(torch.tensor(slots)).tolist() == held
    both = pool.req_index_to_mamba_ping_pong_track_buffer_mapping
    assert both[slots].tolist() == [req.mamba_ping_pong_track_buffer for req in requests]
    every = [*held, *(slot for req in requests for slot in req.mamba_ping_pong_track_buffer)]
    assert len(set(every)) == 12
    assert {req.mamba_next_track_idx for req in requests} == {0}


@every_state
@pytest.mark.parametrize("pre_alloc_size", [None, 2])
def test_too_few_request_slots_leave_everything_as_it_was(
    family: str, state: str, pre_alloc_size: int | None, new_requests: MakeRequests
) -> None:
    pool = make_pool(family, state, 2, 9, pre_alloc_size=pre_alloc_size)
    before = (list(pool.free_slots), list(pool.mamba_pool.free_slots))
    requests = new_requests(len(before[0]) + 1)
    assert pool.alloc(requests) is None
    assert (pool.free_slots, pool.mamba_pool.free_slots) == before
    assert all(req.req_pool_idx is req.mamba_pool_idx is None for req in requests)


@every_state
def test_too_few_mamba_slots_are_found_out_after_the_request_slots_are_gone(
    family: str, state: str, new_requests: MakeRequests
) -> None:
    pool = make_pool(family, state, 4, 2)
    requests = new_requests(3)
    with pytest.raises(MambaShortageError, match="--max-mamba-cache-size"):
        pool.alloc(requests)
    assert pool.available_size() == 1
    assert [req.req_pool_idx is None for req in requests] == [False] * 3
    assert [req.mamba_pool_idx is None for req in requests] == [False, False, True]


@every_state
def test_a_chunked_request_keeps_its_slots(
    family: str, state: str, new_requests: MakeRequests
) -> None:
    pool = make_pool(family, state, 4, 12, extra_buffer=True)
    first, second, newcomer = new_requests(3)
    assert pool.alloc([first, second]) is not None
    held = (second.req_pool_idx, second.mamba_pool_idx, second.mamba_ping_pong_track_buffer)
    second.is_chunked = 1
    slots = pool.alloc([newcomer, second])
    assert slots == [newcomer.req_pool_idx, held[0]]
    assert held[1:] == (second.mamba_pool_idx, second.mamba_ping_pong_track_buffer)


def test_a_prefix_from_the_radix_cache_brings_its_mamba_slot(new_requests: MakeRequests) -> None:
    pool = make_pool("mamba", "corrected", 4, 4)
    (req,) = new_requests(1)
    req.mamba_pool_idx = 3
    slots = pool.alloc([req])
    assert slots is not None
    assert pool.get_mamba_indices(torch.tensor(slots)).tolist() == [3]
    assert pool.mamba_pool.available_size() == 4


def test_the_ping_pong_slot_that_goes_to_the_radix_cache_is_kept(
    new_requests: MakeRequests,
) -> None:
    pool: Any = make_pool("mamba", "corrected", 4, 3, extra_buffer=True)
    (req,) = new_requests(1)
    pool.alloc([req])
    pool.free_mamba_cache(req, mamba_ping_pong_track_buffer_to_keep=1)
    assert pool.mamba_pool.free_slots == [1, 2]


def test_a_request_without_mamba_slot_cannot_give_one_back(new_requests: MakeRequests) -> None:
    with pytest.raises(PoolMisuseError):
        make_pool("mamba", "corrected", 4, 3).free_mamba_cache(new_requests(1)[0])


@every_state
@pytest.mark.parametrize(("pre_alloc_size", "zeroed"), [(None, True), (2, False)])
def test_clear_frees_everything_and_zeroes_the_mappings_unless_pd_decodes(
    family: str, state: str, pre_alloc_size: int | None, zeroed: bool, new_requests: MakeRequests
) -> None:
    pool = make_pool(family, state, 4, 12, pre_alloc_size=pre_alloc_size)
    fresh = (list(pool.free_slots), list(pool.mamba_pool.free_slots))
    pool.alloc(new_requests(3))
    assert any(pool.req_index_to_mamba_index_mapping[[0, 1, 2]])
    pool.clear()
    assert (pool.free_slots, pool.mamba_pool.free_slots) == fresh
    assert any(pool.req_index_to_mamba_index_mapping[[0, 1, 2]]) is not zeroed
