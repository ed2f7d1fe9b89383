"""The paged KV cache: pages of token locations, and one buffer of keys and values per layer.

Location 0 and the rest of page 0 belong to nobody: padded rows write there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from poolbisect.engine.request import Request
from poolbisect.memory.arena import Arena, Buffer
from poolbisect.memory.spaces import IndexSpace


class OutOfPagesError(RuntimeError):
    """More tokens are reserved than the cache has pages for."""


@dataclass(slots=True)
class PageAllocator:
    """Hands out pages 1..pages of `page_size` token locations, first in, first out."""

    pages: int
    page_size: int
    free: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.free = list(range(1, self.pages + 1))

    def cover(self, request: Request, tokens: int) -> list[int]:
        """Give `request` pages for `tokens` tokens in all; the new locations, in order."""
        needed = -(-tokens // self.page_size) - len(request.pages)
        if needed <= 0:
            return []
        if needed > len(self.free):
            raise OutOfPagesError(f"{needed} KV pages wanted, {len(self.free)} free")
        new, self.free = self.free[:needed], self.free[needed:]
        request.pages += new
        return [page * self.page_size + offset for page in new for offset in range(self.page_size)]

    def release(self, request: Request) -> None:
        self.free += request.pages
        request.pages = []


def kv_buffers(
    arena: Arena, prefix: str, layers: int, kv_heads: int, head_dim: int, allocator: PageAllocator
) -> list[Buffer]:
    """One buffer a layer, (locations, 2, kv_heads, head_dim) float32: keys, then values."""
    locations = (allocator.pages + 1) * allocator.page_size
    space = IndexSpace("KV location", allocator.page_size, locations - 1)
    shape = (locations, 2, kv_heads, head_dim)
    return [
        arena.allocate(f"{prefix}[{layer}]", shape, torch.float32, space) for layer in range(layers)
    ]


def interleave(key: Tensor, value: Tensor) -> Tensor:
    """(tokens, kv_heads, head_dim) twice -> (tokens, 2, kv_heads, head_dim)."""
    return torch.stack((key, value), dim=1)
