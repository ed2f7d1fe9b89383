"""Paged attention over all DP ranks at once, and the rows of a pass it works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from poolbisect.engine.graph_inputs import RowInputs
from poolbisect.engine.kv_cache import interleave
from poolbisect.engine.rank import Rank
from poolbisect.memory.arena import Buffer


@dataclass(frozen=True, slots=True)
class Keys:
    """Which cached keys each row of a pass sees; the same for all its layers.

    `locs` are each rank's KV locations (rows, keys) of every position so far; `bias` (rows of all
    ranks, 1, queries, keys) hides what a query must not see.
    """

    locs: tuple[Tensor, ...]
    bias: Tensor


class Pass:
    """The rows of all ranks in one forward, laid out one rank after another.

    All ranks have the same number of tokens a row; ranks without rows take no part.
    """

    def __init__(self, parts: Sequence[tuple[Rank, RowInputs]]) -> None:
        self.parts = parts
        self.rows = [inputs.tokens.shape[0] for _, inputs in parts]
        self.width = parts[0][1].tokens.shape[1]
        self.tokens = torch.cat([inputs.tokens for _, inputs in parts])
        self.positions = torch.cat([inputs.positions for _, inputs in parts])
        rotation = [rank.rotary.read_rows(inputs.positions) for rank, inputs in parts]
        self.rotation = torch.view_as_complex(torch.cat(rotation)).flatten(0, 1)[:, None]

    def by_rank(self, values: Tensor) -> tuple[Tensor, ...]:
        """Split values (tokens of all ranks, ..) into (rows, width, ..) of each rank."""
        return torch.split(values.view(-1, self.width, *values.shape[1:]), self.rows)


@dataclass(frozen=True, slots=True)
class PagedAttention:
    """Grouped-query attention whose keys and values are reached through `req_to_token` only."""

    heads: int
    kv_heads: int
    head_dim: int

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.heads // self.kv_heads

    def keys(self, batch: Pass, asked: Tensor) -> Keys:
        """The keys seen from positions `asked` (rows of all ranks, queries)."""
        length = int(asked.max()) + 1
        positions = torch.arange(length, device=asked.device)
        locs = tuple(
            rank.req_to_token.read_cells(inputs.slots[:, None], positions, inputs.requests).long()
            for rank, inputs in batch.parts
        )
        hidden = positions > asked[..., None]
        bias = torch.zeros(hidden.shape, device=asked.device).masked_fill_(hidden, -torch.inf)
        if self.group > 1:
            bias = bias[:, None].expand(-1, self.group, -1, -1).flatten(1, 2)
        return Keys(locs, bias[:, None])

    def rotated(self, x: Tensor, rotation: Tensor) -> Tensor:
        """x (tokens, heads * head_dim), rotated: (tokens, heads, head_dim)."""
        pairs = torch.view_as_complex(x.view(x.shape[0], -1, self.head_dim // 2, 2))
        return torch.view_as_real(pairs * rotation).flatten(-2)

    def remember(self, kv: Tensor, batch: Pass, caches: Sequence[Buffer]) -> None:
        """Write this pass's keys and values (tokens, 2 * kv heads * head_dim) to the cache."""
        key, value = kv.chunk(2, dim=-1)
        rotated = self.rotated(key, batch.rotation)
        key_value = batch.by_rank(interleave(rotated, value.view_as(rotated)))
        for (_, inputs), cache, values in zip(batch.parts, caches, key_value, strict=True):
            cache.write_rows(inputs.out_locs, values)

    def attend(self, query: Tensor, keys: Keys, caches: Sequence[Buffer]) -> Tensor:
        """Attention of query (tokens, heads, head_dim) over the cache: (tokens, heads * head_dim).

        Query heads that share a key head become further queries of that head.
        """
        rows, length = keys.bias.shape[0], keys.bias.shape[-1]
        width, dim = query.shape[0] // rows, self.head_dim
        cached = query.new_empty((rows, length, 2, self.kv_heads, dim))
        start = 0
        for cache, locs in zip(caches, keys.locs, strict=True):
            cache.read_rows(locs, out=cached[start : start + locs.shape[0]])
            start += locs.shape[0]
        query = query.view(rows, width, self.kv_heads, self.group, dim)
        query = query.permute(0, 2, 3, 1, 4).reshape(rows, self.kv_heads, -1, dim)
        out = F.scaled_dot_product_attention(
            query,
            cached[:, :, 0].transpose(1, 2),
            cached[:, :, 1].transpose(1, 2),
            attn_mask=keys.bias,
        )
        out = out.view(rows, self.kv_heads, self.group, width, dim).permute(0, 3, 1, 2, 4)
        return out.reshape(rows * width, self.heads * dim)


def in_pairs(weight: Tensor, head_dim: int, rotated: int) -> Tensor:
    """Rows of a q or k projection with the `rotated` first of each head in the order of pairs.

    (0, 1, .., half, half + 1, ..) becomes (0, half, 1, half + 1, ..), so that a rotation is one
    complex product. Done to q and k alike it changes no score.
    """
    heads = weight.view(-1, head_dim, weight.shape[1])
    halves = heads[:, :rotated].unflatten(1, (2, rotated // 2))  # type: ignore[no-untyped-call]
    pairs = halves.transpose(1, 2).flatten(1, 2)
    return torch.cat((pairs, heads[:, rotated:]), dim=1).reshape(weight.shape)
