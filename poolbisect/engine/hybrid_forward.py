"""The hybrid miniature's arithmetic over all DP ranks: attention layers, and Mamba2 layers.

A Mamba2 layer's state of a request lives in the rank's mamba buffers and is reached only through
the pool's mapping from request slots to mamba slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from poolbisect.engine.attention import PagedAttention, Pass, in_pairs
from poolbisect.engine.graph_inputs import RowInputs
from poolbisect.engine.rank import Rank
from poolbisect.engine.shape import ModelShape
from poolbisect.memory.arena import Buffer
from poolbisect.models.hybrid import (
    AttentionLayer,
    HybridMiniature,
    Mamba2Mixer,
    MambaLayer,
    rotary_tables,
)


class HybridForward:
    """The model's modules, and the pass over them. Hidden states are float32."""

    def __init__(self, model: HybridMiniature, device: str) -> None:
        self.model = model.to(device).eval().requires_grad_(False)
        self.config = config = model.config
        self.attention = PagedAttention(
            config.num_attention_heads, config.num_key_value_heads, config.head_dim
        )
        self.attention_layers = {
            number: self._fused(layer)
            for number, layer in enumerate(model.layers)
            if number in config.attn_layer_indices
        }

    def _fused(self, layer: AttentionLayer | MambaLayer) -> tuple[Tensor, list[int], Tensor]:
        """q, k, v projections joined, with rotated pairs side by side; widths; output."""
        mixer = layer.get_submodule("self_attn")
        dim = self.config.head_dim
        q, k, v = (mixer.get_parameter(f"{name}_proj.weight") for name in "qkv")
        joined = torch.cat((in_pairs(q, dim, dim // 2), in_pairs(k, dim, dim // 2), v))
        return joined, [q.shape[0], 2 * k.shape[0]], mixer.get_parameter("o_proj.weight")

    @property
    def shape(self) -> ModelShape:
        config = self.config
        return ModelShape(
            hidden_size=config.hidden_size,
            attention_layers=len(config.attn_layer_indices),
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            mamba_layers=len(config.mamba_layers),
            conv_state=config.conv_state_shape,
            ssm_state=config.ssm_state_shape,
        )

    def rotary_table(self, length: int) -> Tensor:
        """cos and sin of each position and pair; the second half of a head is not rotated."""
        pairs = self.config.head_dim // 4
        cos, sin = rotary_tables(self.config, length)
        rotated = torch.stack((cos[:, :pairs], sin[:, :pairs]), dim=-1)
        still = torch.tensor((1.0, 0.0)).expand(length, self.config.head_dim // 2 - pairs, 2)
        return torch.cat((rotated, still), dim=1)

    def target(self, parts: Sequence[tuple[Rank, RowInputs]]) -> tuple[Tensor, ...]:
        """Last hidden states before the final norm, per rank (rows, width, hidden)."""
        batch = Pass(parts)
        keys = self.attention.keys(batch, batch.positions)
        states = [rank.mamba_slots(inputs) for rank, inputs in parts]
        x = self._embed(batch.tokens.flatten())
        attention = mamba = 0
        for number, layer in enumerate(self.model.layers):
            normed = layer.input_layernorm(x)
            if number in self.attention_layers:
                weight, widths, out = self.attention_layers[number]
                caches = [rank.target_kv[attention] for rank, _ in parts]
                q, kv = torch.split(F.linear(normed, weight), widths, dim=-1)
                self.attention.remember(kv, batch, caches)
                query = self.attention.rotated(q, batch.rotation)
                mixed = F.linear(self.attention.attend(query, keys, caches), out)
                attention += 1
            else:
                mixer = layer.get_submodule("mamba")
                mixed = self._mamba(mixer, mamba, normed, batch, states)  # type: ignore[arg-type]
                mamba += 1
            x = layer.after_mixer(x, mixed)
        return batch.by_rank(x)

    def target_logits(self, hidden: Tensor) -> Tensor:
        return self.model.logits(hidden)

    def _embed(self, tokens: Tensor) -> Tensor:
        """Embeddings as a vocabulary-parallel table gives them: an id outside it is a zero row."""
        known = (tokens >= 0) & (tokens < self.config.vocab_size)
        return self.model.embed(tokens.where(known, 0)) * known[..., None]

    def _mamba(
        self,
        mixer: Mamba2Mixer,
        number: int,
        x: Tensor,
        batch: Pass,
        slots: Sequence[Tensor],
    ) -> Tensor:
        """Mamba2 layer `number`: a step from the stored states, or a prompt from empty ones."""
        conv = [rank.mamba_states[number][0] for rank, _ in batch.parts]
        ssm = [rank.mamba_states[number][1] for rank, _ in batch.parts]
        lengths = [inputs.lengths for _, inputs in batch.parts if inputs.lengths is not None]
        if lengths:
            y, conv_after, ssm_after = mixer.prefill(
                x.view(-1, batch.width, x.shape[-1]), torch.cat(lengths)
            )
            y = y.flatten(0, 1)
        else:
            before = [self._read(kind, slots, batch.rows) for kind in (conv, ssm)]
            y, conv_after, ssm_after = mixer.step(x, *before)
        for kind, after in ((conv, conv_after), (ssm, ssm_after)):
            mine = torch.split(after, batch.rows)
            for buffer, at, values in zip(kind, slots, mine, strict=True):
                buffer.write_rows(at, values[: at.shape[0]])
        return y

    def _read(
        self, states: Sequence[Buffer], slots: Sequence[Tensor], rows: Sequence[int]
    ) -> Tensor:
        """States of all ranks' rows; padded rows start from an empty one, which nobody keeps."""
        read = []
        for buffer, at, count in zip(states, slots, rows, strict=True):
            read.append(buffer.read_rows(at))
            if count > at.shape[0]:
                read.append(read[-1].new_zeros((count - at.shape[0], *buffer.tensor.shape[1:])))
        return torch.cat(read)
