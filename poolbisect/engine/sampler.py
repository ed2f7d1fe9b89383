"""Choosing tokens: greedy, or seeded sampling that does not depend on how tokens are batched.

Sampling adds Gumbel noise that is a hash of (request seed, position, token) and takes the maximum,
which draws from softmax(logits / temperature). The same request therefore gets the same text at
any batch size, with speculation or without: a draft is accepted if it equals the drawn token.
"""

from __future__ import annotations

import torch
from torch import Tensor


def choose(logits: Tensor, temperature: float, seeds: Tensor, positions: Tensor) -> Tensor:
    """Token ids for logits (.., vocab); `seeds` and `positions` (int64) broadcast to (..)."""
    if temperature == 0:
        return logits.argmax(-1)
    vocabulary = torch.arange(logits.shape[-1], device=logits.device)
    key = _mix(_mix(seeds + positions * 0x1_0001)[..., None] + vocabulary)
    uniform = ((key >> 11) & ((1 << 52) - 1)).double().add_(0.5).div_(float(1 << 52))
    gumbel = -torch.log(-torch.log(uniform))
    return (logits.double() / temperature + gumbel).argmax(-1)


def _mix(value: Tensor) -> Tensor:
    """A 64-bit finaliser in the manner of SplitMix64 (Steele, Lea, Flood 2014), wrapping."""
    value = (value ^ _shifted(value, 30)) * -0x40A7B892E31B1A47
    value = (value ^ _shifted(value, 27)) * -0x6B2FB644ECCEEE15
    return value ^ _shifted(value, 31)


def _shifted(value: Tensor, bits: int) -> Tensor:
    return (value >> bits) & ((1 << (64 - bits)) - 1)
