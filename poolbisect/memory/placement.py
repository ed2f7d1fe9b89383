"""Where PyTorch's CUDA caching allocator puts a tensor, for tensors that are never freed.

Rules (PyTorch, c10/cuda/CUDACachingAllocator): sizes are rounded up to 512 B; requests up to 1 MiB
are carved from 2 MiB segments, larger ones up to 10 MiB from 20 MiB segments, and anything above
gets a segment of its own rounded to 2 MiB; the smallest free block that fits is taken, and what is
left of it stays free (in the large pool only if more than 1 MiB is left).
"""

from __future__ import annotations

from dataclasses import dataclass, field

KIB, MIB = 1 << 10, 1 << 20
ROUNDING = 512
SMALL_REQUEST = 1 * MIB
SMALL_SEGMENT = 2 * MIB
MIDDLE_REQUEST = 10 * MIB
MIDDLE_SEGMENT = 20 * MIB
LARGE_ROUNDING = 2 * MIB


@dataclass(frozen=True, slots=True)
class Block:
    """A range of bytes of the arena."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(slots=True)
class CachingPlacement:
    """Hands out blocks; `mapped` is the end of the last segment taken from the device."""

    mapped: int = 0
    _small: list[Block] = field(default_factory=list)
    _large: list[Block] = field(default_factory=list)

    def place(self, size: int) -> Block:
        """A block of `size` bytes, rounded up to 512."""
        size = rounded(size)
        small = size <= SMALL_REQUEST
        free = self._small if small else self._large
        fitting = [block for block in free if block.size >= size]
        if fitting:
            home = min(fitting, key=lambda block: (block.size, block.offset))
            free.remove(home)
        else:
            home = self.new_segment(_segment_size(size))
        left = Block(home.offset + size, home.size - size)
        if left.size >= ROUNDING if small else left.size > SMALL_REQUEST:
            free.append(left)
        return Block(home.offset, size)

    def new_segment(self, size: int) -> Block:
        """A segment of its own, behind all others."""
        segment = Block(self.mapped, rounded(size))
        self.mapped = segment.end
        return segment


def rounded(size: int) -> int:
    """`size` rounded up to 512 B, and never 0."""
    return max(1, -(-size // ROUNDING)) * ROUNDING


def _segment_size(size: int) -> int:
    if size <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if size < MIDDLE_REQUEST:
        return MIDDLE_SEGMENT
    return -(-size // LARGE_ROUNDING) * LARGE_ROUNDING
