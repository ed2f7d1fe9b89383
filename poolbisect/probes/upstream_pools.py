"""Upstream's own code, from any tree of its sources, as code under test."""

from __future__ import annotations

from typing import Any, cast

from poolbisect.pools.interface import HybridRequestPool, RequestPool
from poolbisect.pools.upstream import SubjectFault, UpstreamCode, UpstreamPool


class UpstreamPools:
    """Upstream's own pool classes and row counts in the engine's terms."""

    def __init__(self, code: UpstreamCode) -> None:
        self.code = code

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool:
        pool = self.code.make_pool(size, max_context_len, device, pre_alloc_size)
        return cast(RequestPool, self._with_slots(pool))

    def make_hybrid_pool(
        self,
        size: int,
        max_context_len: int,
        device: str,
        *,
        mamba_size: int,
        pre_alloc_size: int | None = None,
        extra_buffer: bool = False,
        overlap: bool = True,
    ) -> HybridRequestPool:
        pool = self.code.make_hybrid_pool(
            size,
            max_context_len,
            device,
            mamba_size=mamba_size,
            pre_alloc_size=pre_alloc_size,
            extra_buffer=extra_buffer,
            overlap=overlap,
        )
        return cast(HybridRequestPool, self._with_slots(pool))

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        return self.code.consumer_rows(buffer, cast(Any, pool)).rows

    def _with_slots(self, pool: UpstreamPool) -> UpstreamPool:
        """SubjectFault for a pool that nothing can be served on."""
        if not pool.free_slots:
            raise SubjectFault(f"{self.code.name} makes a pool without a free slot.")
        return pool
