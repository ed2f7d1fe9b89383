"""The MiMo miniature's arithmetic over all DP ranks: attention per rank, all else gathered.

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

from poolbisect.engine.attention import Keys, PagedAttention, Pass, in_pairs
from poolbisect.engine.graph_inputs import RowInputs
from poolbisect.engine.rank import Rank
from poolbisect.engine.shape import ModelShape
from poolbisect.models.llama import DecoderLayer, LlamaConfig, MimoMiniature, rotary_tables


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
        q, k = (in_pairs(p.weight, dim, dim) for p in (attention.q_proj, attention.k_proj))
        return cls(
            torch.cat((q, k, attention.v_proj.weight)) * layer.input_layernorm.weight,
            [q.shape[0], 2 * k.shape[0]],
            attention.o_proj.weight,
            torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight))
            * layer.post_attention_layernorm.weight,
            mlp.down_proj.weight,
        )


class Forward:
    """The fused weights of a model, and the passes over them. Hidden states are float32."""

    def __init__(self, model: MimoMiniature, device: str) -> None:
        self.config: LlamaConfig = model.config
        self.attention = PagedAttention(
            self.config.num_attention_heads, self.config.num_key_value_heads, self.config.head_dim
        )
        model = model.to(device).eval().requires_grad_(False)
        self.embedding = model.model.embed_tokens.weight
        self.ngrams: Tensor | None = None
        if self.config.ngram_embedding:
            self.ngrams = model.model.get_parameter("embed_ngrams.weight")
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

    @property
    def shape(self) -> ModelShape:
        config = self.config
        return ModelShape(
            hidden_size=config.hidden_size,
            attention_layers=config.num_hidden_layers,
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            mtp_layers=config.num_mtp_layers,
            token_table=config.ngram_embedding,
        )

    def rotary_table(self, length: int) -> Tensor:
        """cos and sin of each position and pair, (length, head_dim / 2, 2)."""
        half = self.config.head_dim // 2
        cos, sin = rotary_tables(self.config, length)
        return torch.stack((cos[:, :half], sin[:, :half]), dim=-1)

    def target(self, parts: Sequence[tuple[Rank, RowInputs]]) -> tuple[Tensor, ...]:
        """Last hidden states before the final norm, per rank (rows, width, hidden)."""
        batch = Pass(parts)
        keys = self.attention.keys(batch, batch.positions)
        x = self.embed(batch.tokens.flatten())
        if self.ngrams is not None:
            x = x + self._embed_ngrams(batch)
        for number, layer in enumerate(self.layers):
            caches = [rank.target_kv[number] for rank, _ in parts]
            q, kv = torch.split(F.linear(self._norm(x), layer.qkv), layer.widths, dim=-1)
            self.attention.remember(kv, batch, caches)
            attended = self.attention.attend(
                self.attention.rotated(q, batch.rotation), keys, caches
            )
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
            keys = self.attention.keys(batch, batch.positions.flatten()[chosen, None])
        embedded = self.embed(batch.tokens.flatten())
        states = torch.cat(list(hidden)).flatten(0, 1)
        joined = torch.cat((self._norm(embedded), self._norm(states)), dim=-1)
        x = F.linear(joined, self.joins[depth])
        normed = self._norm(x)
        caches = [rank.draft_kv[depth] for rank, _ in parts]
        self.attention.remember(F.linear(normed, layer.qkv[layer.widths[0] :]), batch, caches)
        q = F.linear(normed[chosen], layer.qkv[: layer.widths[0]])
        attended = self.attention.attend(
            self.attention.rotated(q, batch.rotation[chosen]), keys, caches
        )
        return self._after_attention(layer, x[chosen], attended), keys

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings as a vocabulary-parallel table gives them: an id outside it is a zero row."""
        known = (tokens >= 0) & (tokens < self.config.vocab_size)
        return F.embedding(tokens.where(known, 0), self.embedding) * known[..., None]

    def _embed_ngrams(self, batch: Pass) -> Tensor:
        """Embeddings of (token before, token), read from each request's row of the token table.

        Tokens of real rows are written to the table first. A pair that cannot be, such as one with
        an id outside the vocabulary, has a zero row.
        """
        assert self.ngrams is not None
        before = []
        for rank, inputs in batch.parts:
            real = len(inputs.requests)
            slots, positions = inputs.slots[:, None], inputs.positions
            rank.token_table.write_cells(
                slots[:real], positions[:real], inputs.tokens[:real], inputs.requests
            )
            seen = rank.token_table.read_cells(slots, (positions - 1).clamp_min(0), inputs.requests)
            before.append(seen.long().where(positions > 0, 0))
        vocabulary = self.config.vocab_size
        first, second = torch.cat(before).flatten(), batch.tokens.flatten()
        known = (first >= 0) & (first < vocabulary) & (second >= 0) & (second < vocabulary)
        pairs = (first * vocabulary + second).where(known, 0)
        return F.embedding(pairs, self.ngrams) * known[..., None]

    def target_logits(self, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden), self.target_head)

    def draft_logits(self, depth: int, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden), self.draft_heads[depth])

    def _norm(self, x: Tensor) -> Tensor:
        """RMS norm without its weight, which is part of the projection behind it."""
        length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x * length.square_().div_(x.shape[-1]).add_(self.config.rms_norm_eps).rsqrt_()

    def _after_attention(self, layer: FusedLayer, x: Tensor, attended: Tensor) -> Tensor:
        x = torch.addmm(x, attended, layer.out.T)
        gate, up = F.linear(self._norm(x), layer.gate_up).chunk(2, dim=-1)
        return torch.addmm(x, F.silu(gate).mul_(up), layer.down.T)
