"""What every request pool does, whichever state of the fix it is in: hand out request slots.

A request pool owns `req_to_token`, whose row `slot` lists the KV-cache location of each token of
the request that holds `slot`. Slots are handed out first in, first out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from poolbisect.pools.interface import SlotHolder


class PoolMisuseError(RuntimeError):
    """The caller broke the pool's contract: it asked for a slot wrongly or freed one it lacks."""


class SlotPool(ABC):
    """A FIFO of slots over `req_to_token`, an int32 tensor of shape (rows, max_context_len)."""

    most_reusing: int | None = None

    size: int
    req_to_token: Tensor
    free_slots: list[int]

    def __init__(self, rows: int, slots: range, max_context_len: int, device: str) -> None:
        self.max_context_len = max_context_len
        self.device = device
        self.req_to_token = torch.zeros((rows, max_context_len), dtype=torch.int32, device=device)
        self.free_slots = list(slots)

    def write(self, indices: Any, values: Tensor) -> None:
        """Set KV locations: `indices` address `req_to_token`, (slot, position)."""
        self.req_to_token[indices] = values

    def available_size(self) -> int:
        """How many slots are free."""
        return len(self.free_slots)

    def alloc(self, reqs: Sequence[SlotHolder]) -> list[int] | None:
        """Slots of `reqs`, in order; None, with nothing changed, when too few are free.

        A request that already holds a slot keeps it, which only a chunked prefill or a request
        with committed KV may do; otherwise PoolMisuseError.
        """
        reusing = [req for req in reqs if req.req_pool_idx is not None]
        if self.most_reusing is not None and len(reusing) > self.most_reusing:
            raise PoolMisuseError(
                f"{len(reusing)} requests of one batch already hold a slot; "
                f"at most {self.most_reusing} may"
            )
        if any(req.is_chunked <= 0 and req.kv_committed_len <= 0 for req in reusing):
            raise PoolMisuseError(
                "a request that keeps its slot must be chunked or have committed KV"
            )
        needed = len(reqs) - len(reusing)
        if needed > len(self.free_slots):
            return None
        taken = iter(self.free_slots[:needed])
        self.free_slots = self.free_slots[needed:]
        slots = []
        for req in reqs:
            if req.req_pool_idx is None:
                req.req_pool_idx = next(taken)
            slots.append(req.req_pool_idx)
        return slots

    @abstractmethod
    def clear(self) -> None:
        """Make every slot free again; each state of the fix has its own."""

    def free(self, req: SlotHolder) -> None:
        """Give the slot of `req` back, to the end of the queue."""
        if req.req_pool_idx is None:
            raise PoolMisuseError("a request that holds no slot cannot be freed")
        self.free_slots.append(req.req_pool_idx)
        req.req_pool_idx = None
