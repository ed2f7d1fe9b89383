"""Upstream's own hybrid pool behind this project's interface of hybrid pools."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from poolbisect.pools.interface import MAMBA_MAPPING, PING_PONG_MAPPING, MambaHolder, SlotRows
from poolbisect.pools.slots import PoolMisuseError
from poolbisect.pools.upstream.adapter import UpstreamPool
from poolbisect.pools.upstream.faults import Guesses, StubGap
from poolbisect.pools.upstream.requests import HybridRequestView, RequestView

_ALLOCATOR = "mamba_allocator"  # keeps the free list since #27256, the mamba pool before


class UpstreamMambaSlots:
    """The mamba slots of upstream's hybrid pool, read from wherever its era keeps them."""

    def __init__(self, upstream: Any) -> None:
        self._pool = upstream.mamba_pool
        self._allocator: Any = getattr(upstream, _ALLOCATOR, self._pool)

    @property
    def size(self) -> int:
        return int(self._pool.size)

    @property
    def rows(self) -> int:
        """Rows of the state tensors upstream allocated, one layer each."""
        states = self._pool.mamba_cache
        # In its first era a plain tuple: of convolutions, then the recurrent state.
        temporal = states[1] if isinstance(states, tuple) else states.temporal
        return int(temporal.shape[1])

    @property
    def free_slots(self) -> list[int]:
        """A copy: the mamba slots that are free, in upstream's own order."""
        return [int(slot) for slot in self._allocator.free_slots]

    def available_size(self) -> int:
        return int(self._allocator.available_size())


class UpstreamHybridPool(UpstreamPool):
    """A pool made by upstream's hybrid class: same attributes and methods as `HybridSlots`.

    The mappings are upstream's own tensors. Memory set in their place is what upstream's code then
    indexes, so that memory without bounds shows what an unchecked kernel would do.
    """

    def __init__(self, upstream: Any, subject: str, guesses: Guesses) -> None:
        super().__init__(upstream, subject, guesses)
        with self._judged("its mamba pool"):
            self.mamba_pool = UpstreamMambaSlots(upstream)
        self._frees_with_slot = "free_mamba_cache" in inspect.signature(upstream.free).parameters

    @property
    def req_index_to_mamba_index_mapping(self) -> SlotRows:
        return self._mapping(MAMBA_MAPPING)

    @req_index_to_mamba_index_mapping.setter
    def req_index_to_mamba_index_mapping(self, rows: SlotRows) -> None:
        self._replace(MAMBA_MAPPING, rows)

    @property
    def req_index_to_mamba_ping_pong_track_buffer_mapping(self) -> SlotRows:
        return self._mapping(PING_PONG_MAPPING)

    @req_index_to_mamba_ping_pong_track_buffer_mapping.setter
    def req_index_to_mamba_ping_pong_track_buffer_mapping(self, rows: SlotRows) -> None:
        self._replace(PING_PONG_MAPPING, rows)

    def free_mamba_cache(self, req: MambaHolder) -> None:
        """Give the mamba slots of `req` back, before `free` takes its request slot.

        Where upstream's `free` does both, this only marks the request, and `free` follows.
        """
        if req.mamba_pool_idx is None:
            raise PoolMisuseError("a request that holds no mamba slot cannot give it back")
        if self._frees_with_slot:
            req.mamba_pool_idx = None
            return
        with self._judged("free_mamba_cache"):
            self.upstream.free_mamba_cache(self._view(req))

    def get_mamba_indices(self, req_indices: Tensor) -> Tensor:
        """Mamba slots of request slots, through the mapping."""
        with self._judged("get_mamba_indices"):
            indices: Tensor = self.upstream.get_mamba_indices(req_indices)
        return indices

    def alloc(self, reqs: Sequence[MambaHolder]) -> list[int] | None:  # type: ignore[override]
        """As `HybridSlots.alloc`; what upstream raises past the end or short of slots is a
        SubjectFault."""
        slots = super().alloc(reqs)
        if slots is not None and any(req.mamba_pool_idx is None for req in reqs):
            raise StubGap(
                f"{self._subject} cannot be tested: its hybrid pool does not tell requests their "
                "mamba slots, as all did since #11214."
            )
        return slots

    def _new_view(self, req: Any) -> RequestView:
        return HybridRequestView(req, self._guesses, self.device)

    def _mapping(self, name: str) -> SlotRows:
        """AttributeError where there is none: an early era's, or without the extra buffer."""
        rows: SlotRows = getattr(self.upstream, name)
        return rows

    def _replace(self, name: str, rows: SlotRows) -> None:
        own = self._mapping(name)
        if rows.shape != own.shape or rows.dtype != own.dtype:
            raise ValueError(
                f"{name} is {tuple(own.shape)} {own.dtype}, not {tuple(rows.shape)} {rows.dtype}"
            )
        setattr(self.upstream, name, rows)
