"""The model's arithmetic over all DP ranks in step: attention per rank, everything else gathered.

Under DP attention each rank attends over its own KV cache, and the MLP runs on the gathered tokens
of all ranks. Here projections and norms are gathered too: on one machine that changes no value
and saves small matrix products.
"""

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
from poolbisect.models.llama import DecoderLayer, LlamaConfig, MimoMiniature


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """A decoder layer with its q, k, v and its gate, up projections joined.

    The weight of a norm is multiplied into the projection behind it. The rows of q and k are put
    in the order of rotated pairs, so that a rotation is one complex product; scores do not change.
    """

    qkv: Tensor
    widths: list[int]
    out: Tensor
    gate_up: Tensor
    down: Tensor

    @classmethod
    def of(cls, layer: DecoderLayer) -> FusedLayer:
        attention, mlp = layer.self_attn, layer.mlp
        dim = attention.config.head_dim
        q, k = (_in_pairs(p.weight, dim) for p in (attention.q_proj, attention.k_proj))
        return cls(
            torch.cat((q, k, attention.v_proj.weight)) * layer.input_layernorm.weight,
            [q.shape[0], 2 * k.shape[0]],
            attention.o_proj.weight,
            torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight))
            * layer.post_attention_layernorm.weight,
            mlp.down_proj.weight,
        )


def _in_pairs(weight: Tensor, head_dim: int) -> Tensor:
    """Rows (0, 1, .., half, half + 1, ..) of each head reordered to (0, half, 1, half + 1, ..)."""
    halves = weight.view(-1, 2, head_dim // 2, weight.shape[1])
    return halves.transpose(1, 2).reshape(weight.shape)


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


class Forward:
    """The fused weights of a model, and the passes over them. Hidden states are float32."""

    def __init__(self, model: MimoMiniature, device: str) -> None:
        self.config: LlamaConfig = model.config
        self.group = self.config.num_attention_heads // self.config.num_key_value_heads
        model = model.to(device).eval().requires_grad_(False)
        self.embedding = model.model.embed_tokens.weight
        self.layers = [FusedLayer.of(layer) for layer in model.decoder_layers()]
        head = model.lm_head.weight
        self.target_head = head * model.model.norm.weight
        mtp = model.mtp_layers()
        self.draft_layers = [FusedLayer.of(layer.block) for layer in mtp]
        self.draft_heads = [head * layer.final_layernorm.weight for layer in mtp]
        self.joins = [
            layer.eh_proj.weight * torch.cat((layer.enorm.weight, layer.hnorm.weight))
            for layer in mtp
        ]

    def target(self, parts: Sequence[tuple[Rank, RowInputs]]) -> tuple[Tensor, ...]:
        """Last hidden states before the final norm, per rank (rows, width, hidden)."""
        batch = Pass(parts)
        keys = self.keys(batch, batch.positions)
        x = self.embed(batch.tokens.flatten())
        for number, layer in enumerate(self.layers):
            caches = [rank.target_kv[number] for rank, _ in parts]
            q, kv = torch.split(F.linear(self._norm(x), layer.qkv), layer.widths, dim=-1)
            self._remember(kv, batch, caches)
            attended = self._attend(self._rotated(q, batch.rotation), keys, caches)
            x = self._after_attention(layer, x, attended)
        return batch.by_rank(x)

    def draft(
        self,
        depth: int,
        parts: Sequence[tuple[Rank, RowInputs]],
        hidden: Sequence[Tensor],
        at: Sequence[Tensor],
        keys: Keys | None,
    ) -> tuple[Tensor, Keys]:
        """Input of the head from MTP layer `depth` at one token a row, (rows of all ranks, hidden).

        `hidden` are the target's states (rows, width, hidden), `at` (rows,) the tokens asked for,
        per rank. An MTP layer has one block, so of the other tokens nothing but keys and values is
        read. The keys a row sees are those of the depth before: the position asked for stays.
        """
        batch = Pass(parts)
        layer = self.draft_layers[depth]
        chosen = torch.cat(list(at))
        chosen = chosen + batch.width * torch.arange(chosen.shape[0], device=chosen.device)
        if keys is None:
            keys = self.keys(batch, batch.positions.flatten()[chosen, None])
        embedded = self.embed(batch.tokens.flatten())
        states = torch.cat(list(hidden)).flatten(0, 1)
        joined = torch.cat((self._norm(embedded), self._norm(states)), dim=-1)
        x = F.linear(joined, self.joins[depth])
        normed = self._norm(x)
        caches = [rank.draft_kv[depth] for rank, _ in parts]
        self._remember(F.linear(normed, layer.qkv[layer.widths[0] :]), batch, caches)
        q = F.linear(normed[chosen], layer.qkv[: layer.widths[0]])
        attended = self._attend(self._rotated(q, batch.rotation[chosen]), keys, caches)
        return self._after_attention(layer, x[chosen], attended), keys

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings as a vocabulary-parallel table gives them: an id outside it is a zero row."""
        known = (tokens >= 0) & (tokens < self.config.vocab_size)
        return F.embedding(tokens.where(known, 0), self.embedding) * known[..., None]

    def target_logits(self, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden), self.target_head)

    def draft_logits(self, depth: int, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden), self.draft_heads[depth])

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

    def _norm(self, x: Tensor) -> Tensor:
        """RMS norm without its weight, which is part of the projection behind it."""
        length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x * length.square_().div_(x.shape[-1]).add_(self.config.rms_norm_eps).rsqrt_()

    def _rotated(self, x: Tensor, rotation: Tensor) -> Tensor:
        """x (tokens, heads * head_dim), rotated: (tokens, heads, head_dim)."""
        pairs = torch.view_as_complex(x.view(x.shape[0], -1, self.config.head_dim // 2, 2))
        return torch.view_as_real(pairs * rotation).flatten(-2)

    def _remember(self, kv: Tensor, batch: Pass, caches: Sequence[Buffer]) -> None:
        """Write this pass's keys and values to their KV locations."""
        key, value = kv.chunk(2, dim=-1)
        rotated = self._rotated(key, batch.rotation)
        key_value = batch.by_rank(interleave(rotated, value.view_as(rotated)))
        for (_, inputs), cache, values in zip(batch.parts, caches, key_value, strict=True):
            cache.write_rows(inputs.out_locs, values)

    def _attend(self, query: Tensor, keys: Keys, caches: Sequence[Buffer]) -> Tensor:
        """Attention of query (tokens, heads, head_dim) over cached keys and values: (tokens, ..).

        Query heads that share a key head become further queries of that head.
        """
        rows, length = keys.bias.shape[0], keys.bias.shape[-1]
        heads, dim = query.shape[1:]
        kv_heads, width = heads // self.group, query.shape[0] // rows
        cached = query.new_empty((rows, length, 2, kv_heads, dim))
        start = 0
        for cache, locs in zip(caches, keys.locs, strict=True):
            cache.read_rows(locs, out=cached[start : start + locs.shape[0]])
            start += locs.shape[0]
        query = query.view(rows, width, kv_heads, self.group, dim)
        query = query.permute(0, 2, 3, 1, 4).reshape(rows, kv_heads, self.group * width, dim)
        out = F.scaled_dot_product_attention(
            query,
            cached[:, :, 0].transpose(1, 2),
            cached[:, :, 1].transpose(1, 2),
            attn_mask=keys.bias,
        )
        out = out.view(rows, kv_heads, self.group, width, dim).permute(0, 3, 1, 2, 4)
        return out.reshape(rows * width, heads * dim)

    def _after_attention(self, layer: FusedLayer, x: Tensor, attended: Tensor) -> Tensor:
        x = torch.addmm(x, attended, layer.out.T)
        gate, up = F.linear(self._norm(x), layer.gate_up).chunk(2, dim=-1)
        return torch.addmm(x, F.silu(gate).mul_(up), layer.down.T)
