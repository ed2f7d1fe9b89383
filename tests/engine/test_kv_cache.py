"""The paged KV cache: pages belong to one request at a time, and page 0 to nobody."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.engine.kv_cache import OutOfPagesError, PageAllocator, interleave, kv_buffers
from poolbisect.engine.request import Request
from poolbisect.memory.arena import Arena
from poolbisect.memory.guard import Guard, MemoryMode


def new_request(name: str = "a") -> Request:
    return Request(name, [], 1, 0)


def test_locations_come_page_by_page_in_order() -> None:
    allocator, request = PageAllocator(pages=4, page_size=3), new_request()
    assert allocator.cover(request, 4) == [3, 4, 5, 6, 7, 8]
    assert allocator.cover(request, 6) == [], "its pages hold that many already"
    assert allocator.cover(request, 7) == [9, 10, 11]
    assert request.pages == [1, 2, 3]


def test_pages_go_out_first_in_first_out() -> None:
    allocator = PageAllocator(pages=3, page_size=1)
    first, second = new_request("a"), new_request("b")
    allocator.cover(first, 2)
    allocator.cover(second, 1)
    allocator.release(second)
    allocator.release(first)
    assert first.pages == []
    assert allocator.cover(new_request("c"), 3) == [3, 1, 2]


def test_too_few_pages_leave_everything_as_it_was() -> None:
    allocator, request = PageAllocator(pages=2, page_size=4), new_request()
    allocator.cover(request, 4)
    with pytest.raises(OutOfPagesError, match="2 KV pages wanted, 1 free"):
        allocator.cover(request, 12)
    assert (request.pages, allocator.free) == ([1], [2])


@given(
    pages=st.integers(1, 12),
    page_size=st.integers(1, 5),
    life=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=40),
)
def test_a_location_belongs_to_one_request_at_a_time(
    pages: int, page_size: int, life: list[tuple[int, int]]
) -> None:
    """Each entry grows one of four requests to so many tokens; 0 releases it."""
    allocator = PageAllocator(pages, page_size)
    requests = [new_request(str(number)) for number in range(4)]
    held: list[list[int]] = [[] for _ in requests]
    for which, tokens in life:
        request = requests[which]
        if tokens == 0:
            allocator.release(request)
            held[which] = []
        else:
            try:
                held[which] += allocator.cover(request, tokens)
            except OutOfPagesError:
                assert -(-tokens // page_size) - len(request.pages) > len(allocator.free)
            else:
                assert len(held[which]) >= tokens
        every = [location for locations in held for location in locations]
        assert len(set(every)) == len(every)
        assert all(page_size <= location < (pages + 1) * page_size for location in every)
        assert len(allocator.free) * page_size + len(every) == pages * page_size


def test_buffers_have_a_row_for_every_location_and_a_page_for_padding() -> None:
    arena = Arena("cpu", 4 << 20, Guard(MemoryMode.GUARD))
    allocator = PageAllocator(pages=3, page_size=4)
    buffers = kv_buffers(arena, "kv", layers=2, kv_heads=2, head_dim=8, allocator=allocator)
    assert [buffer.name for buffer in buffers] == ["kv[0]", "kv[1]"]
    largest = max(allocator.cover(new_request(), 12))
    for buffer in buffers:
        assert buffer.tensor.shape == (16, 2, 2, 8)
        assert buffer.tensor.dtype == torch.float32
        assert buffer.space is not None
        assert (buffer.space.first, buffer.space.last) == (4, largest)
        assert buffer.space.missing_rows(buffer.rows) == 0


def test_keys_come_before_values() -> None:
    key, value = torch.zeros(5, 2, 8), torch.ones(5, 2, 8)
    both = interleave(key, value)
    assert both.shape == (5, 2, 2, 8)
    assert torch.equal(both[:, 0], key)
    assert torch.equal(both[:, 1], value)
