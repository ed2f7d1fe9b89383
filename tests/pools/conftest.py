"""What tests of pools share: upstream's releases, and requests of a hybrid model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.history.releases import fetch_release
from poolbisect.pools.upstream import UpstreamCode, load_upstream


@dataclass(eq=False)
class HybridRequest:
    """A request of a hybrid model that does nothing but hold slots."""

    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    is_chunked: int = 0
    mamba_pool_idx: int | None = None
    mamba_ping_pong_track_buffer: list[int] | None = None
    mamba_next_track_idx: int | None = None


@pytest.fixture(scope="session")
def new_requests() -> Callable[[int], list[HybridRequest]]:
    """Make so many requests that hold nothing."""
    return lambda count: [HybridRequest() for _ in range(count)]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], UpstreamCode]:
    """Upstream's code of a version; skips offline, except in CI."""
    cache: Path = tmp_path_factory.mktemp("releases")
    loaded: dict[str, UpstreamCode] = {}

    def load(version: str) -> UpstreamCode:
        if version not in loaded:
            try:
                loaded[version] = load_upstream(fetch_release(version, cache))
            except InfrastructureError:
                if os.environ.get("CI"):
                    raise
                pytest.skip("no package index can be reached")
        return loaded[version]

    return load
