"""Each shipped state does what the release it stands for does: any life of a pool, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.pools.interface import MAMBA_MAPPINGS, HybridRequestPool
from poolbisect.pools.mamba_pool import MambaShortageError
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.slots import PoolMisuseError
from poolbisect.pools.upstream import SubjectFault, UpstreamCode

pytestmark = pytest.mark.network

RELEASES = {
    "0.5.9": ("pd-mamba", "added"),
    "0.5.10.post1": ("pd-mamba", "original"),
    "0.5.11": ("padding", "original"),
    "0.5.12": ("padding", "corrected"),
}
every_release = pytest.mark.parametrize("version", list(RELEASES))
Release = Callable[[str], UpstreamCode]
MakeRequests = Callable[[int], list[Any]]


def both(version: str, release: Release, *sizes: int, **more: Any) -> tuple[Any, Any]:
    """A release's own pool and the shipped one that stands for it."""
    family, state = RELEASES[version]
    shipped = ShippedPools(state, family).make_hybrid_pool(*sizes, "cpu", **more)
    return release(version).make_hybrid_pool(*sizes, "cpu", **more), shipped


def kind(error: Exception) -> str:
    """What an exception is about, whoever raised it."""
    cause = error.__cause__ if isinstance(error, SubjectFault) else error
    if isinstance(cause, AssertionError | MambaShortageError | PoolMisuseError):
        return "refused"
    return type(cause).__name__


def observed(pool: HybridRequestPool, requests: list[Any]) -> tuple[Any, ...]:
    mappings = [getattr(pool, name, None) for name in MAMBA_MAPPINGS]
    return (
        list(pool.free_slots),
        pool.available_size(),
        list(pool.mamba_pool.free_slots),
        pool.mamba_pool.available_size(),
        [None if mapping is None else mapping[:].tolist() for mapping in mappings],
        [vars(req).copy() for req in requests],
    )


def play(
    pool: HybridRequestPool, life: list[tuple[str, int, int]], new_requests: MakeRequests
) -> list[object]:
    """Everything that can be seen of a pool after each step of its life."""
    running: list[Any] = []
    seen: list[object] = [(pool.size, tuple(pool.req_to_token.shape), pool.mamba_pool.rows)]
    for action, number, more in life:
        batch: list[Any] = []
        try:
            if action == "alloc":
                batch = new_requests(1 + number % 4)
                seen.append(pool.alloc(batch))
            elif action == "continue" and running:
                chunked = running[number % len(running) :][: 1 + more % 2]
                for req in chunked:
                    req.is_chunked = 1
                batch = new_requests(more % 3)
                seen.append(pool.alloc([*batch, *chunked]))
            elif action == "free" and running:
                req = running.pop(number % len(running))
                batch = [req]
                pool.free_mamba_cache(req)
                pool.free(req)
            elif action == "clear":
                pool.clear()
                running = []
        except Exception as error:
            seen.append(kind(error))
        seen.append(observed(pool, [*running, *batch]))
        running += [req for req in batch if req.mamba_pool_idx is not None]
    return seen


lives = st.lists(
    st.tuples(
        st.sampled_from(["alloc", "alloc", "alloc", "free", "free", "continue", "clear"]),
        st.integers(0, 11),
        st.integers(0, 5),
    ),
    max_size=25,
)


@every_release
@settings(max_examples=60)
@given(
    size=st.integers(1, 5),
    mamba_size=st.integers(1, 12),
    pre_alloc_size=st.none() | st.integers(0, 3),
    extra_buffer=st.booleans(),
    overlap=st.booleans(),
    life=lives,
)
def test_a_shipped_state_and_its_release_behave_alike(
    version: str,
    size: int,
    mamba_size: int,
    pre_alloc_size: int | None,
    extra_buffer: bool,
    overlap: bool,
    life: list[tuple[str, int, int]],
    release: Release,
    new_requests: MakeRequests,
) -> None:
    overlap = overlap or version == "0.5.9"  # which took the width from speculation, off here
    upstream, shipped = both(
        version,
        release,
        *(size, 4),
        mamba_size=mamba_size,
        pre_alloc_size=pre_alloc_size,
        extra_buffer=extra_buffer,
        overlap=overlap,
    )
    assert play(upstream, life, new_requests) == play(shipped, life, new_requests)


def first_failing_slot(pool: Any, new_requests: MakeRequests) -> tuple[int, str] | None:
    """The slot whose request is the first to break a pool that serves one after the other."""
    for req in new_requests(3 * len(pool.free_slots)):
        slot = pool.free_slots[0]
        try:
            pool.alloc([req])
        except (IndexError, SubjectFault) as error:
            return slot, str(error.__cause__ or error)
        pool.free_mamba_cache(req)
        pool.free(req)
    return None


@every_release
@pytest.mark.parametrize("mamba_size", [1, 3, 8, 12])
def test_a2_slots_past_a_smaller_mamba_pool(
    version: str, mamba_size: int, release: Release, new_requests: MakeRequests
) -> None:
    short = version in ("0.5.9", "0.5.10.post1") and mamba_size < 8
    for pool in both(version, release, 8, 4, mamba_size=mamba_size):
        failed = first_failing_slot(pool, new_requests)
        if short:
            message = f"index {mamba_size} is out of bounds for dimension 0 with size {mamba_size}"
            assert failed == (mamba_size, message)
        else:
            assert failed is None


@every_release
@pytest.mark.parametrize("pre_alloc_size", [0, 32, 64])
def test_a3_pd_decode_of_64_requests_on_2_ranks(
    version: str, pre_alloc_size: int, release: Release, new_requests: MakeRequests
) -> None:
    for pool in both(version, release, 32, 4, mamba_size=32, pre_alloc_size=pre_alloc_size):
        failed = first_failing_slot(pool, new_requests)
        if version == "0.5.10.post1" and pre_alloc_size:
            assert failed == (32, "index 32 is out of bounds for dimension 0 with size 32")
        else:
            assert failed is None


@every_release
@pytest.mark.parametrize("pre_alloc_size", [None, 0])
def test_a4_the_only_request_of_a_pool_of_one_is_always_on_the_last_slot(
    version: str, pre_alloc_size: int | None, release: Release, new_requests: MakeRequests
) -> None:
    for pool in both(version, release, 1, 4, mamba_size=1, pre_alloc_size=pre_alloc_size):
        last = pool.free_slots[-1]
        assert pool.free_slots == [last]
        assert first_failing_slot(pool, new_requests) is None
        assert pool.free_slots == [last]
