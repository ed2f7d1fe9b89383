"""The MiMo miniature: a Llama-style decoder and three multi-token-prediction (MTP) layers.

Parameter names of the base model are those of `transformers`' LlamaForCausalLM, so the same
file serves there. MTP layer k takes, at position p, the base model's last hidden state of p
(before the final norm) and the embedding of token p+1+k, and predicts token p+2+k; embedding
and output head are the base model's. (Shape of the idea: DeepSeek-V3 and MiMo technical reports.)

With `ngram_embedding` the base model's input is the sum of a token's embedding and that of the
pair it forms with the token before it (0 at the start).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """Sizes of the model; the names are those of a Hugging Face `config.json`."""

    vocab_size: int
    hidden_size: int = 128
    intermediate_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    max_position_embeddings: int = 256
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    num_mtp_layers: int = 3
    ngram_embedding: bool = False

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def as_dict(self) -> dict[str, int | float]:
        return asdict(self)


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        kv_size = config.num_key_value_heads * config.head_dim
        self.config = config
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        shape = (batch, length, -1, self.config.head_dim)
        q = rotate(self.q_proj(x).view(shape).transpose(1, 2), cos, sin)
        k = rotate(self.k_proj(x).view(shape).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = Mlp(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class MtpLayer(nn.Module):
    """One multi-token-prediction layer; `forward` returns the input of the output head."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.enorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.hnorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.block = DecoderLayer(config)
        self.final_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def join(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        return self.eh_proj(torch.cat((self.enorm(embedded), self.hnorm(hidden)), dim=-1))

    def forward(self, embedded: Tensor, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return self.final_layernorm(self.block(self.join(embedded, hidden), cos, sin))


class LlamaBackbone(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        if config.ngram_embedding:
            self.embed_ngrams = nn.Embedding(config.vocab_size**2, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class MimoMiniature(nn.Module):
    """Base decoder and MTP layers, for training and as the holder of the weights."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = LlamaBackbone(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.mtp = nn.ModuleList(MtpLayer(config) for _ in range(config.num_mtp_layers))

    def decoder_layers(self) -> list[DecoderLayer]:
        return [cast(DecoderLayer, layer) for layer in self.model.layers]

    def mtp_layers(self) -> list[MtpLayer]:
        return [cast(MtpLayer, layer) for layer in self.mtp]

    def hidden_states(self, tokens: Tensor) -> Tensor:
        """Last hidden states before the final norm; tokens (batch, length) -> (.., hidden)."""
        cos, sin = rotary_tables(self.config, tokens.shape[1], tokens.device)
        x = self.model.embed_tokens(tokens)
        if self.config.ngram_embedding:
            before = F.pad(tokens[:, :-1], (1, 0))
            x = x + self.model.embed_ngrams(before * self.config.vocab_size + tokens)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Next-token logits (.., vocab) of hidden states before the final norm."""
        return self.lm_head(self.model.norm(hidden))

    def mtp_logits(self, tokens: Tensor, hidden: Tensor, depth: int) -> Tensor:
        """Logits of MTP layer `depth`: row p predicts token p+2+depth; length-1-depth rows."""
        length = tokens.shape[1] - 1 - depth
        cos, sin = rotary_tables(self.config, length, tokens.device)
        embedded = self.model.embed_tokens(tokens[:, 1 + depth :])
        return self.lm_head(self.mtp[depth](embedded, hidden[:, :length], cos, sin))


def rotary_tables(
    config: LlamaConfig, length: int, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """cos and sin of rotary position embedding, each (length, head_dim), halves repeated."""
    half = config.head_dim // 2
    inverse = config.rope_theta ** (
        -torch.arange(0, half, dtype=torch.float32, device=device) / half
    )
    angle = torch.outer(torch.arange(length, dtype=torch.float32, device=device), inverse)
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x (.., head_dim) with cos and sin that broadcast to it."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
