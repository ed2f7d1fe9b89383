"""Overlap scheduling's future buffers: what one step leaves on the device for the next.

The scheduler launches step n+1 before it has seen the result of step n. A step therefore stores
its outcome at indices handed out in a ring, and the next step of the same requests resolves them.
Between the two, another batch (a prefill) may run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from poolbisect.engine.request import Request
from poolbisect.memory.arena import Arena, Buffer
from poolbisect.memory.spaces import IndexSpace

VERIFIED_ID = "future.verified_id"
NEW_SEQ_LENS = "future.new_seq_lens"
TOPK_P = "future.topk_p"
TOPK_INDEX = "future.topk_index"
UPSTREAM_ORDER = (TOPK_P, TOPK_INDEX, VERIFIED_ID, NEW_SEQ_LENS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step hands to the next, one row per request."""

    verified_id: Tensor
    new_seq_lens: Tensor
    topk_p: Tensor
    topk_index: Tensor

    def row(self, at: int) -> Outcome:
        """The outcome of one request."""
        one = slice(at, at + 1)
        return Outcome(
            self.verified_id[one], self.new_seq_lens[one], self.topk_p[one], self.topk_index[one]
        )

    @classmethod
    def joined(cls, outcomes: Sequence[Outcome]) -> Outcome:
        """Outcomes of several requests, in order."""
        return cls(
            torch.cat([outcome.verified_id for outcome in outcomes]),
            torch.cat([outcome.new_seq_lens for outcome in outcomes]),
            torch.cat([outcome.topk_p for outcome in outcomes]),
            torch.cat([outcome.topk_index for outcome in outcomes]),
        )


@dataclass(slots=True)
class FutureMap:
    """The ring and its buffers. Rows: 3 batches in the ring and 2 of margin, as upstream's."""

    max_running: int
    num_steps: int
    space: IndexSpace = field(init=False)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.space = IndexSpace("future index", 1, self.rows - 1)

    @property
    def ring(self) -> int:
        return 3 * self.max_running

    @property
    def rows(self) -> int:
        return self.ring + 2 * self.max_running

    def builders(self, arena: Arena) -> dict[str, Callable[[], None]]:
        """How to allocate each buffer, by name, so that the rank decides the order."""
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            TOPK_P: ((self.rows, self.num_steps), torch.float32),
            TOPK_INDEX: ((self.rows, self.num_steps), torch.int64),
            VERIFIED_ID: ((self.rows,), torch.int32),
            NEW_SEQ_LENS: ((self.rows,), torch.int64),
        }

        def builder(name: str) -> Callable[[], None]:
            def build() -> None:
                self.buffers[name] = arena.allocate(name, *shapes[name], self.space)

            return build

        return {name: builder(name) for name in UPSTREAM_ORDER}

    def reserve(self, count: int) -> tuple[int, int]:
        """The next `count` indices of the ring, as first and past-the-end.

        Indices whose outcome is still to be resolved are passed over: many prefills in a row
        would otherwise come round to them.
        """
        for _ in range(self.ring):
            start = self._count + 1
            held = [i for i in range(start, start + count) if i in self.space.owners]
            if not held:
                self._count = (self._count + count) % self.ring
                return start, start + count
            self._count = held[-1] % self.ring
        raise RuntimeError(f"no {count} future indices in a row are free")

    def store(self, start: int, end: int, outcome: Outcome, requests: list[Request]) -> None:
        self.buffers[VERIFIED_ID].tensor[start:end] = outcome.verified_id
        self.buffers[NEW_SEQ_LENS].tensor[start:end] = outcome.new_seq_lens
        self.buffers[TOPK_P].tensor[start:end] = outcome.topk_p
        self.buffers[TOPK_INDEX].tensor[start:end] = outcome.topk_index
        self.space.take(range(start, end), (request.id for request in requests))

    def resolve(self, indices: Tensor) -> Outcome:
        """Read the outcome stored at `indices` (requests,), and stop owning them."""
        self.space.release(indices.tolist())
        return Outcome(
            verified_id=self.buffers[VERIFIED_ID].tensor[indices],
            new_seq_lens=self.buffers[NEW_SEQ_LENS].tensor[indices],
            topk_p=self.buffers[TOPK_P].tensor[indices],
            topk_index=self.buffers[TOPK_INDEX].tensor[indices],
        )
