"""Requests and mamba slots per rank, from a server's flags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.pools.mamba_sizing import (
    MambaSizing,
    mamba_ratio,
    mamba_size_per_rank,
    pre_alloc_size,
    running_requests_per_rank,
)


@pytest.mark.parametrize(
    ("radix_cache", "extra_buffer", "overlap", "ratio"),
    [
        (False, False, True, 1),
        (False, True, True, 1),
        (True, False, True, 3),
        (True, False, False, 3),
        (True, True, True, 5),
        (True, True, False, 4),
    ],
)
def test_the_ratio_of_mamba_slots_to_requests(
    radix_cache: bool, extra_buffer: bool, overlap: bool, ratio: int
) -> None:
    assert mamba_ratio(radix_cache=radix_cache, extra_buffer=extra_buffer, overlap=overlap) == ratio


@pytest.mark.parametrize(
    ("extra_buffer", "overlap", "width", "each"),
    [(False, True, 2, 1), (False, False, 1, 1), (True, True, 2, 3), (True, False, 1, 2)],
)
def test_slots_of_one_request(extra_buffer: bool, overlap: bool, width: int, each: int) -> None:
    mamba = MambaSizing(8, extra_buffer, overlap)
    assert (mamba.ping_pong_width, mamba.slots_per_request) == (width, each)


def test_the_cap_takes_the_smaller_of_share_and_mamba_slots() -> None:
    assert running_requests_per_rank(128, 2, mamba_size=256, ratio=3) == 64
    assert running_requests_per_rank(128, 2, mamba_size=100, ratio=3) == 33
    assert running_requests_per_rank(64, 2, mamba_size=32, ratio=1) == 32


def test_a_dp_size_that_does_not_divide_loses_the_remainder() -> None:
    assert running_requests_per_rank(10, 3, mamba_size=100, ratio=1) == 3
    assert mamba_size_per_rank(10, 64, 3) == 3
    assert mamba_size_per_rank(None, 64, 3) == 21


@given(
    requests=st.integers(1, 512),
    dp_size=st.integers(1, 8),
    mamba_size=st.integers(1, 600),
    radix_cache=st.booleans(),
)
def test_a_colocated_server_never_has_more_request_slots_than_mamba_slots(
    requests: int, dp_size: int, mamba_size: int, radix_cache: bool
) -> None:
    """Which is why it hides mappings as long as the mamba pool, while slots start at 0."""
    ratio = mamba_ratio(radix_cache=radix_cache)
    assert running_requests_per_rank(requests, dp_size, mamba_size, ratio) <= mamba_size


@pytest.mark.parametrize(("slots", "extra"), [(1, 2), (32, 64), (33, 0), (64, 0)])
def test_pd_decode_pre_allocates_twice_the_slots_of_a_small_pool(slots: int, extra: int) -> None:
    assert pre_alloc_size(slots) == extra


def test_a_large_pool_pre_allocates_what_is_configured() -> None:
    assert (pre_alloc_size(64, 16), pre_alloc_size(8, 5)) == (16, 16)
