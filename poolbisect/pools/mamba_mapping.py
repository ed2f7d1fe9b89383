"""What every hybrid pool does, whichever state of the fixes it is in: map requests to mamba slots.

A hybrid pool is a request pool with a mamba pool beside it, and two mappings indexed by request
slot: to the request's mamba slot, and to its ping-pong slots (with the extra buffer). Layers reach
the recurrent state of a request only through them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from poolbisect.pools.interface import MambaHolder, SlotRows
from poolbisect.pools.mamba_pool import RESERVED, MambaPool, MambaShortageError
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.slots import PoolMisuseError, SlotPool


class HybridSlots(SlotPool):
    """Mixed into a request pool class, in front of it; `pool_arguments` are that class's own.

    Mappings are int32, (rows,) and (rows, 1 or 2), and may be replaced by other memory of that
    shape. The pool writes rows of them as it allocates: an index past the end raises IndexError
    where the memory checks it, as a tensor does.
    """

    first_mamba_slot = RESERVED
    clear_zeroes_mappings = True

    req_index_to_mamba_index_mapping: SlotRows
    req_index_to_mamba_ping_pong_track_buffer_mapping: SlotRows

    def __init__(self, *pool_arguments: Any, mamba: MambaSizing) -> None:
        super().__init__(*pool_arguments)
        self.enable_mamba_extra_buffer = mamba.extra_buffer
        self.mamba_ping_pong_track_buffer_size = mamba.ping_pong_width
        self.mamba_pool = MambaPool(self.effective_mamba_size(mamba), self.first_mamba_slot)
        rows = self.mapping_rows()
        self.req_index_to_mamba_index_mapping = self._zeros(rows)
        if mamba.extra_buffer:
            self.req_index_to_mamba_ping_pong_track_buffer_mapping = self._zeros(
                rows, mamba.ping_pong_width
            )

    @abstractmethod
    def mapping_rows(self) -> int:
        """Rows of both mappings; each state of the fix has its own."""

    def effective_mamba_size(self, mamba: MambaSizing) -> int:
        """Mamba slots the pool really gets."""
        return mamba.size

    def alloc(self, reqs: Sequence[MambaHolder]) -> list[int] | None:  # type: ignore[override]
        """Request slots as SlotPool.alloc, and for each request that has none a mamba slot.

        A request keeps the mamba slots it holds: between the chunks of its prefill, or from a
        prefix that the radix cache knew. MambaShortageError when they run out, which upstream
        asserts after request slots have been taken; nothing is given back.
        """
        slots = super().alloc(reqs)
        if slots is None:
            return None
        for req in reqs:
            if req.mamba_pool_idx is None:
                (req.mamba_pool_idx,) = self._take(1, len(reqs))
            if self.enable_mamba_extra_buffer and req.mamba_ping_pong_track_buffer is None:
                req.mamba_ping_pong_track_buffer = self._take(
                    self.mamba_ping_pong_track_buffer_size, len(reqs)
                )
                req.mamba_next_track_idx = 0
        self.req_index_to_mamba_index_mapping[slots] = self._int32(
            [req.mamba_pool_idx for req in reqs]
        )
        if self.enable_mamba_extra_buffer:
            self.req_index_to_mamba_ping_pong_track_buffer_mapping[slots] = self._int32(
                [req.mamba_ping_pong_track_buffer for req in reqs]
            )
        return slots

    def free_mamba_cache(
        self, req: MambaHolder, mamba_ping_pong_track_buffer_to_keep: int | None = None
    ) -> None:
        """Give the mamba slots of `req` back, before `free` takes its request slot.

        Ping-pong slots are those its row of the mapping names, except the one to keep, which goes
        to the radix cache. The request's own list of them is left, as upstream leaves it.
        """
        if req.mamba_pool_idx is None:
            raise PoolMisuseError("a request that holds no mamba slot cannot give it back")
        self.mamba_pool.free([self.mamba_slot_of(req)])
        req.mamba_pool_idx = None
        if self.enable_mamba_extra_buffer:
            row = self.req_index_to_mamba_ping_pong_track_buffer_mapping[req.req_pool_idx]
            self.mamba_pool.free(
                slot
                for column, slot in enumerate(row.tolist())
                if column != mamba_ping_pong_track_buffer_to_keep
            )

    def mamba_slot_of(self, req: MambaHolder) -> int:
        """The mamba slot that freeing `req` gives back."""
        assert req.mamba_pool_idx is not None
        return int(req.mamba_pool_idx)

    def get_mamba_indices(self, req_indices: Tensor) -> Tensor:
        """Mamba slots of request slots, through the mapping."""
        return self.req_index_to_mamba_index_mapping[req_indices]

    def clear(self) -> None:
        super().clear()  # type: ignore[safe-super]
        self.mamba_pool.clear()
        if self.clear_zeroes_mappings:
            self.req_index_to_mamba_index_mapping.zero_()
            if self.enable_mamba_extra_buffer:
                self.req_index_to_mamba_ping_pong_track_buffer_mapping.zero_()

    def _take(self, count: int, batch: int) -> list[int]:
        taken = self.mamba_pool.alloc(count)
        if taken is None:
            raise MambaShortageError(
                f"not enough mamba slots for a batch of {batch}: "
                f"{self.mamba_pool.available_size()} of {self.mamba_pool.size} are free, and a "
                f"request needs {count} more; increase --max-mamba-cache-size"
            )
        return taken

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int32, device=self.device)

    def _int32(self, values: list[Any]) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=self.device)


class HybridDecodeSlots(HybridSlots):
    """The hybrid pool of a PD decode instance, in front of its request pool class.

    Upstream's is a hybrid pool that borrows only the decode pool's constructor: it lets any number
    of requests keep their slot, and clears without zeroing the mappings.
    """

    most_reusing: Any = None  # an int in the decode pool that this goes in front of
    clear_zeroes_mappings = False
