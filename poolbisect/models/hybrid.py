"""The Mamba2-attention hybrid miniature, in the layout of `transformers`' BambaForCausalLM.

A serving engine supplies the memory of the recurrent state: per Mamba2 layer and request, the last
d_conv-1 inputs of the convolution and the state-space state. `Mamba2Mixer.prefill` and `.step`
take such rows and return their successors; the modules keep nothing.
(Mamba2: Dao and Gu, "Transformers are SSMs", 2024; B and C are shared by all heads, one group.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from poolbisect.models.llama import RMSNorm, rotate


@dataclass(frozen=True, slots=True)
class HybridConfig:
    """Sizes of the model; the names are those of Bamba's `config.json`."""

    vocab_size: int
    hidden_size: int = 96
    intermediate_size: int = 256
    num_hidden_layers: int = 4
    attn_layer_indices: tuple[int, ...] = (2,)
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    mamba_expand: int = 2
    mamba_n_heads: int = 6
    mamba_d_state: int = 32
    mamba_d_conv: int = 4
    mamba_chunk_size: int = 16
    max_position_embeddings: int = 256
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        object.__setattr__(self, "attn_layer_indices", tuple(self.attn_layer_indices))
        if self.mamba_size % self.mamba_n_heads or self.hidden_size % self.num_attention_heads:
            raise ValueError("mamba_n_heads and num_attention_heads must divide what they split")
        if self.head_dim % 4:
            raise ValueError("half of head_dim is rotated in pairs, so 4 must divide head_dim")

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def mamba_size(self) -> int:
        """Inner width of a Mamba2 layer: all heads side by side."""
        return self.mamba_expand * self.hidden_size

    @property
    def conv_dim(self) -> int:
        """Channels of the convolution: x, B and C side by side."""
        return self.mamba_size + 2 * self.mamba_d_state

    @property
    def mamba_layers(self) -> tuple[int, ...]:
        """Indices of the Mamba2 layers, in order; the others attend."""
        return tuple(i for i in range(self.num_hidden_layers) if i not in self.attn_layer_indices)

    @property
    def conv_state_shape(self) -> tuple[int, int]:
        """Convolution state of one request in one Mamba2 layer: (conv_dim, d_conv - 1)."""
        return self.conv_dim, self.mamba_d_conv - 1

    @property
    def ssm_state_shape(self) -> tuple[int, int, int]:
        """State-space state of one request in one Mamba2 layer: (heads, head_dim, d_state)."""
        return (
            self.mamba_n_heads,
            self.mamba_size // self.mamba_n_heads,
            self.mamba_d_state,
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Mamba2Mixer(nn.Module):
    """One Mamba2 layer without its norm and residual; state shapes are the configuration's."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        self.config = config
        inner, heads = config.mamba_size, config.mamba_n_heads
        self.in_proj = nn.Linear(config.hidden_size, inner + config.conv_dim + heads, bias=False)
        self.conv1d = nn.Conv1d(
            config.conv_dim, config.conv_dim, config.mamba_d_conv, groups=config.conv_dim
        )
        self.dt_bias = nn.Parameter(torch.ones(heads))
        self.A_log = nn.Parameter(torch.arange(1, heads + 1).float().log())
        self.D = nn.Parameter(torch.ones(heads))
        self.norm = RMSNorm(inner, config.rms_norm_eps)
        self.out_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def prefill(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        conv_state: Tensor | None = None,
        ssm_state: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run right-padded sequences x (batch, length, hidden) and return (y, conv, ssm states).

        `lengths` (batch,) counts each row's real tokens (absent: all); y of padding is meaningless,
        the states are those after the last real token. Given states continue an earlier part of
        the sequences; absent ones start at zero, as a new request does.
        """
        batch, length, _ = x.shape
        gate, convolved, dt = self._project(x)
        if conv_state is None:
            conv_state = x.new_zeros(batch, *self.config.conv_state_shape)
        window = torch.cat((conv_state, convolved.transpose(1, 2)), dim=-1)
        mixed = functional.silu(self._convolve(window)).transpose(1, 2)
        kept = self.config.mamba_d_conv - 1
        if lengths is None:
            conv_after = window[..., length:]
        else:
            # A step of size zero leaves the state as it is, so padding does nothing.
            dt = dt * (torch.arange(length, device=x.device) < lengths[:, None])[..., None]
            last = lengths[:, None, None] + torch.arange(kept, device=x.device)
            conv_after = window.gather(-1, last.expand(batch, self.config.conv_dim, kept))
        inputs, b, c = self._split(mixed)
        inputs = inputs.reshape(batch, length, *self.config.ssm_state_shape[:2])
        y, ssm_after = chunk_scan(
            inputs, dt, -self.A_log.exp(), b, c, self.config.mamba_chunk_size, ssm_state
        )
        y = (y + inputs * self.D[:, None]).flatten(-2)
        return self._finish(y, gate), conv_after, ssm_after

    def step(
        self, x: Tensor, conv_state: Tensor, ssm_state: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run one token per request, x (batch, hidden), and return (y, conv, ssm states).

        The states given are overwritten with their successors, and returned: pass the rows gathered
        for this batch, then store them. (New tensors of this size cost more than the arithmetic.)
        """
        gate, convolved, dt = self._project(x)
        window = torch.cat((conv_state, convolved[..., None]), dim=-1)
        conv_state.copy_(window[..., 1:])
        inputs, b, c = self._split(functional.silu(self._convolve(window)[..., 0]))
        inputs = inputs.reshape(len(x), *self.config.ssm_state_shape[:2])
        decay = (dt * -self.A_log.exp()).exp()
        ssm_state.mul_(decay[..., None, None])
        ssm_state.addcmul_((inputs * dt[..., None])[..., None], b[:, None, None, :])
        # This orientation is three times as fast on CPU as state times column.
        y = torch.bmm(c[:, None], ssm_state.flatten(1, 2).mT).view_as(inputs)
        y = (y + inputs * self.D[:, None]).flatten(-2)
        return self._finish(y, gate), conv_state, ssm_state

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gate (.., inner), input of the convolution (.., conv_dim), step sizes (.., heads)."""
        sizes = [self.config.mamba_size, self.config.conv_dim, self.config.mamba_n_heads]
        gate, convolved, dt = torch.split(functional.linear(x, self.in_proj.weight), sizes, dim=-1)
        return gate, convolved, functional.softplus(dt + self.dt_bias)

    def _convolve(self, window: Tensor) -> Tensor:
        """Depthwise convolution of (batch, conv_dim, d_conv - 1 + n): (batch, conv_dim, n)."""
        convolution = self.conv1d
        return functional.conv1d(
            window, convolution.weight, convolution.bias, groups=self.config.conv_dim
        )

    def _split(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = self.config.mamba_d_state
        x, b, c = torch.split(mixed, [self.config.mamba_size, state, state], dim=-1)
        return x, b, c

    def _finish(self, y: Tensor, gate: Tensor) -> Tensor:
        return functional.linear(self.norm(y * functional.silu(gate)), self.out_proj.weight)


class PartialRotaryAttention(nn.Module):
    """Grouped-query attention that rotates the first half of each head, as Bamba does."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        kv_size = config.num_key_value_heads * config.head_dim
        self.config = config
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def qkv(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated q (.., heads, head_dim) and k, and v (.., kv heads, head_dim) of x (.., hidden).

        cos and sin are the rows of `rotary_tables` at the tokens' positions, (.., head_dim / 2).
        """
        shape = (*x.shape[:-1], -1, self.config.head_dim)
        cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
        q = rotate_first(functional.linear(x, self.q_proj.weight).view(shape), cos, sin)
        k = rotate_first(functional.linear(x, self.k_proj.weight).view(shape), cos, sin)
        return q, k, functional.linear(x, self.v_proj.weight).view(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in self.qkv(x, cos, sin))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return functional.linear(out.transpose(1, 2).flatten(-2), self.o_proj.weight)


class GatedMlp(nn.Module):
    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = functional.silu(functional.linear(x, self.gate_proj.weight))
        return functional.linear(
            gate * functional.linear(x, self.up_proj.weight), self.down_proj.weight
        )


class HybridLayer(nn.Module):
    """What both kinds of layer share: the norm before the mixer, and all that comes after it."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.pre_ff_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.feed_forward = GatedMlp(config)

    def after_mixer(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The layer's output, given its input x and what its mixer made of the normed x."""
        x = x + mixed
        return x + cast(Tensor, self.feed_forward(self.pre_ff_layernorm(x)))


class MambaLayer(HybridLayer):
    def __init__(self, config: HybridConfig) -> None:
        super().__init__(config)
        self.mamba = Mamba2Mixer(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return self.after_mixer(x, self.mamba.prefill(self.input_layernorm(x))[0])


class AttentionLayer(HybridLayer):
    def __init__(self, config: HybridConfig) -> None:
        super().__init__(config)
        self.self_attn = PartialRotaryAttention(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return self.after_mixer(x, self.self_attn(self.input_layernorm(x), cos, sin))


class HybridBackbone(nn.Module):
    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            AttentionLayer(config) if index in config.attn_layer_indices else MambaLayer(config)
            for index in range(config.num_hidden_layers)
        )
        self.final_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class HybridMiniature(nn.Module):
    """The whole model, for training and as the holder of the weights."""

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        self.config = config
        self.model = HybridBackbone(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    @property
    def layers(self) -> tuple[MambaLayer | AttentionLayer, ...]:
        return tuple(cast(MambaLayer | AttentionLayer, layer) for layer in self.model.layers)

    def embed(self, tokens: Tensor) -> Tensor:
        return functional.embedding(tokens, self.model.embed_tokens.weight)

    def hidden_states(self, tokens: Tensor) -> Tensor:
        """Last hidden states before the final norm; tokens (batch, length) -> (.., hidden)."""
        cos, sin = rotary_tables(self.config, tokens.shape[1], tokens.device)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Next-token logits (.., vocab) of hidden states before the final norm."""
        return functional.linear(self.model.final_layernorm(hidden), self.lm_head.weight)


def load(path: Path) -> HybridMiniature:
    """The model of a safetensors file whose metadata holds its configuration, in evaluation mode.

    Raises FileNotFoundError, or KeyError when the metadata has no `config`.
    """
    with safe_open(path, framework="pt") as file:
        metadata: Mapping[str, str] = file.metadata() or {}
    model = HybridMiniature(HybridConfig(**json.loads(metadata["config"])))
    model.load_state_dict(load_file(path))
    return model.eval()


def chunk_scan(
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    chunk: int,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs (batch, length, heads, head_dim) and last state of the state-space recurrence

        state[t] = exp(dt[t] a) state[t-1] + dt[t] x[t] b[t]^T,    y[t] = state[t] c[t]

    for x (batch, length, heads, head_dim), dt (batch, length, heads), a (heads,), b and c
    (batch, length, d_state) and state (batch, heads, head_dim, d_state), by default zero.
    Within chunks it is computed as masked attention, between them as the recurrence (the
    state-space dual form; Dao and Gu 2024, section 6).
    """
    batch, length, heads, head_dim = x.shape
    chunk = min(chunk, length)
    missing = -length % chunk
    parts = (batch, (length + missing) // chunk, chunk)
    x = functional.pad(x * dt[..., None], (0, 0, 0, 0, 0, missing)).view(*parts, heads, head_dim)
    b = functional.pad(b, (0, 0, 0, missing)).view(*parts, -1)
    c = functional.pad(c, (0, 0, 0, missing)).view(*parts, -1)
    # Logarithm of the decay from before a chunk to each position in it: (batch, k, heads, chunk).
    log_decay = functional.pad(dt * a, (0, 0, 0, missing)).view(*parts, heads).transpose(2, 3)
    log_decay = log_decay.cumsum(-1)

    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=x.device).tril()
    between = log_decay[..., :, None] - log_decay[..., None, :]
    weights = between.masked_fill(~causal, -torch.inf).exp() * (c @ b.mT)[:, :, None]
    y = weights @ x.transpose(2, 3)

    remaining = (log_decay[..., -1:] - log_decay).exp().transpose(2, 3)[..., None]
    added = ((x * remaining).flatten(-2).mT @ b).view(batch, -1, heads, head_dim, b.shape[-1])
    whole_chunk = log_decay[..., -1].exp()[..., None, None]
    last = torch.zeros_like(added[:, 0]) if state is None else state
    starts = []
    for index in range(added.shape[1]):
        starts.append(last)
        last = last * whole_chunk[:, index] + added[:, index]
    carried = c @ torch.stack(starts, dim=1).flatten(2, 3).mT
    carried = carried.view(*parts, heads, head_dim).transpose(2, 3)
    y = y + carried * log_decay.exp()[..., None]
    return y.transpose(2, 3).flatten(1, 2)[:, :length], last


def rotary_tables(
    config: HybridConfig, length: int, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """cos and sin of the rotated half of a head, each (length, head_dim / 2), halves repeated."""
    pairs = config.head_dim // 4
    inverse = config.rope_theta ** (
        -torch.arange(0, pairs, dtype=torch.float32, device=device) / pairs
    )
    angle = torch.outer(torch.arange(length, dtype=torch.float32, device=device), inverse)
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos(), angle.sin()


def rotate_first(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of the first cos.shape[-1] entries of x (.., head_dim); the rest stays."""
    size = cos.shape[-1]
    return torch.cat((rotate(x[..., :size], cos, sin), x[..., size:]), dim=-1)
