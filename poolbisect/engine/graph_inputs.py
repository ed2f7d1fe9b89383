"""Input buffers of a captured graph: fixed addresses, a few batch sizes, padded rows at the end.

A batch of 5 replays the graph captured for 8. Its three padded rows read token 0 at position 0 and
write KV location 0; their request slots are what an earlier, larger batch left there (`stale`) or
0 (`zeroed`). Batch-row axes are not an index space: no slot ever indexes these buffers' rows.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import torch
from torch import Tensor

from poolbisect.engine.config import PaddedRows, graph_buckets
from poolbisect.memory.arena import Arena, Buffer


@dataclass(frozen=True, slots=True)
class RowInputs:
    """Per-request inputs of one forward, padded rows included: (rows, width) and (rows,).

    `lengths` (rows,) counts the real tokens of each row of a prefill; None in a decode.
    """

    tokens: Tensor
    positions: Tensor
    out_locs: Tensor
    slots: Tensor
    requests: tuple[str | None, ...]
    lengths: Tensor | None = None


@dataclass(slots=True)
class GraphInputs:
    """`width` tokens for each of up to `max_bs` requests; int64 buffers in the arena."""

    max_bs: int
    padded_rows: PaddedRows
    input_ids: Buffer
    positions: Buffer
    out_cache_loc: Buffer
    req_pool_indices: Buffer

    @classmethod
    def allocate(
        cls, arena: Arena, prefix: str, max_bs: int, width: int, padded_rows: PaddedRows
    ) -> GraphInputs:
        wide, narrow = (max_bs, width), (max_bs,)
        return cls(
            max_bs,
            padded_rows,
            arena.allocate(f"{prefix}.input_ids", wide, torch.int64),
            arena.allocate(f"{prefix}.positions", wide, torch.int64),
            arena.allocate(f"{prefix}.out_cache_loc", wide, torch.int64),
            arena.allocate(f"{prefix}.req_pool_indices", narrow, torch.int64),
        )

    def bucket(self, rows: int) -> int:
        """The captured batch size that `rows` requests replay; `rows` itself beyond the largest."""
        sizes = graph_buckets(self.max_bs)
        at = bisect_left(sizes, rows)
        return sizes[at] if at < len(sizes) else rows

    def fill_slots(self, slots: Tensor) -> Tensor:
        """Copy the real rows' slots in; the whole buffer, padded rows as the policy leaves them."""
        held = self.req_pool_indices.tensor
        held[: slots.shape[0]] = slots
        if self.padded_rows == PaddedRows.ZEROED:
            held[slots.shape[0] :] = 0
        return held

    def fill(
        self,
        rows: int,
        tokens: Tensor,
        positions: Tensor,
        out_locs: Tensor,
        requests: tuple[str | None, ...],
    ) -> RowInputs:
        """Inputs for the graph of `rows` rows; the tensors given hold the real rows only."""
        count, width = tokens.shape
        for buffer, values in (
            (self.input_ids, tokens),
            (self.positions, positions),
            (self.out_cache_loc, out_locs),
        ):
            buffer.tensor[:count, :width] = values
            buffer.tensor[count:rows, :width] = 0
        return RowInputs(
            self.input_ids.tensor[:rows, :width],
            self.positions.tensor[:rows, :width],
            self.out_cache_loc.tensor[:rows, :width],
            self.req_pool_indices.tensor[:rows],
            requests,
        )
