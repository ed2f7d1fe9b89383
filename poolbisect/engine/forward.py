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
from poolbisect.models.llama import DecoderLayer, LlamaConfig, MimoMiniature, rotate


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """A decoder layer with its q, k, v and its gate, up projections joined."""

    input_norm: Tensor
    qkv: Tensor
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor

    @classmethod
    def of(cls, layer: DecoderLayer) -> FusedLayer:
        attention, mlp = layer.self_attn, layer.mlp
        return cls(
            layer.input_layernorm.weight,
            torch.cat((attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight)),
            attention.o_proj.weight,
            layer.post_attention_layernorm.weight,
            torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight)),
            mlp.down_proj.weight,
        )


@dataclass(frozen=True, slots=True)
class RankPlan:
    """What attention needs to know of one rank's rows, computed once for all layers."""

    rank: Rank
    inputs: RowInputs
    kv_locs: Tensor
    bias: Tensor
    cos: Tensor
    sin: Tensor
    tokens: slice


class Forward:
    """The fused weights of a model, and the passes over them. Hidden states are float32."""

    def __init__(self, model: MimoMiniature, device: str) -> None:
        self.config: LlamaConfig = model.config
        model = model.to(device).eval().requires_grad_(False)
        self.embedding = model.model.embed_tokens.weight
        self.layers = [FusedLayer.of(layer) for layer in model.decoder_layers()]
        self.final_norm = model.model.norm.weight
        self.head = model.lm_head.weight
        self.mtp = model.mtp_layers()
        self.mtp_layers = [FusedLayer.of(mtp.block) for mtp in self.mtp]

    def target(self, batches: Sequence[tuple[Rank, RowInputs]]) -> list[Tensor]:
        """Last hidden states before the final norm, per rank (rows, width, hidden)."""
        plans = self._plan(batches)
        x = self.embed(_gather([plan.inputs.tokens for plan in plans]))
        for number, layer in enumerate(self.layers):
            x = self._layer(layer, x, plans, [plan.rank.target_kv[number] for plan in plans])
        return [x[plan.tokens].view(*plan.inputs.tokens.shape, -1) for plan in plans]

    def draft(
        self, depth: int, batches: Sequence[tuple[Rank, RowInputs]], hidden: Sequence[Tensor]
    ) -> list[Tensor]:
        """Input of the head from MTP layer `depth`; `hidden` and result (rows, width, hidden)."""
        plans = self._plan(batches)
        mtp = self.mtp[depth]
        embedded = self.embed(_gather([plan.inputs.tokens for plan in plans]))
        x = mtp.join(embedded, torch.cat([part.flatten(0, 1) for part in hidden]))
        layer = self.mtp_layers[depth]
        x = self._layer(layer, x, plans, [plan.rank.draft_kv[depth] for plan in plans])
        return [x[plan.tokens].view(*plan.inputs.tokens.shape, -1) for plan in plans]

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings as a vocabulary-parallel table gives them: an id outside it is a zero row."""
        known = (tokens >= 0) & (tokens < self.config.vocab_size)
        return F.embedding(tokens.where(known, 0), self.embedding) * known[..., None]

    def target_logits(self, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden, self.final_norm), self.head)

    def draft_logits(self, depth: int, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden, self.mtp[depth].final_layernorm.weight), self.head)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, self.config.rms_norm_eps)

    def _plan(self, batches: Sequence[tuple[Rank, RowInputs]]) -> list[RankPlan]:
        plans, start = [], 0
        for rank, inputs in batches:
            count = inputs.tokens.numel()
            plans.append(self._plan_rank(rank, inputs, slice(start, start + count)))
            start += count
        return plans

    def _plan_rank(self, rank: Rank, inputs: RowInputs, tokens: slice) -> RankPlan:
        positions = inputs.positions
        length = int(positions.max()) + 1 if positions.numel() else 0
        key_positions = torch.arange(length, device=positions.device)
        kv_locs = rank.req_to_token.read_cells(
            inputs.slots[:, None], key_positions, inputs.requests
        ).long()
        visible = key_positions <= positions[..., None]
        bias = torch.zeros(visible.shape, device=positions.device)
        bias.masked_fill_(~visible, float("-inf"))
        group = self.config.num_attention_heads // self.config.num_key_value_heads
        bias = bias[:, None].repeat(1, 1, group, 1)
        rotary = rank.rotary.read_rows(positions.reshape(-1))
        return RankPlan(rank, inputs, kv_locs, bias, rotary[:, :1], rotary[:, 1:], tokens)

    def _layer(
        self, layer: FusedLayer, x: Tensor, plans: list[RankPlan], kv: list[Buffer]
    ) -> Tensor:
        qkv = F.linear(self._norm(x, layer.input_norm), layer.qkv)
        attended = [
            self._attend(qkv[plan.tokens], plan, cache)
            for plan, cache in zip(plans, kv, strict=True)
        ]
        x = x + F.linear(torch.cat(attended), layer.out)
        gate, up = F.linear(self._norm(x, layer.mlp_norm), layer.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, layer.down)

    def _attend(self, qkv: Tensor, plan: RankPlan, cache: Buffer) -> Tensor:
        """Write this pass's keys and values, then attend over the cache: (tokens, hidden)."""
        config, inputs = self.config, plan.inputs
        heads, kv_heads, dim = (
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )
        rows, width = inputs.tokens.shape
        if rows == 0:
            return qkv[:, : heads * dim]
        qkv = qkv.view(-1, heads + 2 * kv_heads, dim)
        rotated = rotate(qkv[:, : heads + kv_heads], plan.cos, plan.sin)
        key_value = interleave(rotated[:, heads:], qkv[:, heads + kv_heads :])
        cache.write_rows(inputs.out_locs.reshape(-1), key_value)
        cached = cache.read_rows(plan.kv_locs)
        # Query heads that share a key head become further queries of that head.
        group = heads // kv_heads
        query = rotated[:, :heads].view(rows, width, kv_heads, group, dim)
        query = query.permute(0, 2, 3, 1, 4).reshape(rows, kv_heads, group * width, dim)
        out = F.scaled_dot_product_attention(
            query,
            cached[:, :, 0].transpose(1, 2),
            cached[:, :, 1].transpose(1, 2),
            attn_mask=plan.bias,
        )
        out = out.view(rows, kv_heads, group, width, dim).permute(0, 3, 1, 2, 4)
        return out.reshape(rows * width, heads * dim)


def _gather(parts: list[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])
