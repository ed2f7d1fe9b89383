"""Placement follows the rules of PyTorch's caching allocator for tensors that are never freed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.memory.placement import Block, CachingPlacement

KIB, MIB = 1 << 10, 1 << 20
sizes = st.one_of(
    st.integers(0, 4 * KIB), st.integers(0, 2 * MIB), st.integers(MIB, 30 * MIB), st.just(MIB)
)


@dataclass
class Segment:
    """A segment seen to be mapped, and the blocks put into it."""

    start: int
    end: int
    small: bool
    blocks: list[Block] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Bytes behind the last block that may still be handed out."""
        left = self.end - (self.blocks[-1].end if self.blocks else self.start)
        return left if self.small or not self.blocks or left > MIB else 0


def segment_size(size: int) -> int:
    if size <= MIB:
        return 2 * MIB
    return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB


@given(st.lists(sizes, max_size=40))
def test_every_rule_at_every_step(requests: list[int]) -> None:
    placement = CachingPlacement()
    segments: list[Segment] = []
    for request in requests:
        size = max(512, -(-request // 512) * 512)
        mapped = placement.mapped
        fitting = [s for s in segments if s.small == (size <= MIB) and s.free >= size]
        block = placement.place(request)

        assert block.size == size
        assert block.offset % 512 == 0
        if placement.mapped > mapped:
            assert not fitting, "a new segment is taken only when no free block fits"
            assert placement.mapped - mapped == segment_size(size)
            segments.append(Segment(mapped, placement.mapped, size <= MIB))
        (home,) = [s for s in segments if s.start <= block.offset and block.end <= s.end]
        assert home.small == (size <= MIB), "small and large tensors share no segment"
        if fitting:
            assert home.free == min(s.free for s in fitting), "the smallest free block that fits"
        assert all(block.offset >= other.end for other in home.blocks), "blocks never overlap"
        home.blocks.append(block)


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (21 * MIB, 22 * MIB),
    ],
)
def test_the_segment_a_first_request_maps(size: int, segment: int) -> None:
    placement = CachingPlacement()
    placement.place(size)
    assert placement.mapped == segment


def test_small_tensors_follow_each_other_in_one_segment() -> None:
    placement = CachingPlacement()
    first, second, third = placement.place(100), placement.place(513), placement.place(MIB)
    assert (first, second) == (Block(0, 512), Block(512, 1024))
    assert third == Block(1536, MIB)
    assert placement.mapped == 2 * MIB


def test_a_buffer_just_above_one_mebibyte_leaves_the_small_tensors() -> None:
    """The upstream buffer stands right at this edge, so a row decides what lies behind it."""
    below, above = CachingPlacement(), CachingPlacement()
    assert below.place(MIB).end == below.place(512).offset
    above.place(MIB + 512)
    assert above.place(512).offset == 20 * MIB


def test_what_a_large_block_leaves_is_used_only_when_above_one_mebibyte() -> None:
    placement = CachingPlacement()
    placement.place(9 * MIB)
    placement.place(9 * MIB)
    assert placement.place(MIB + 512).offset == 18 * MIB
    assert placement.place(MIB + 512).offset == 20 * MIB


def test_a_segment_of_its_own_is_shared_with_nobody() -> None:
    placement = CachingPlacement()
    placement.place(512)
    segment = placement.new_segment(4 * MIB + 1)
    assert segment == Block(2 * MIB, 4 * MIB + 512)
    assert placement.place(512) == Block(512, 512)
    assert placement.place(2 * MIB).offset == segment.end
