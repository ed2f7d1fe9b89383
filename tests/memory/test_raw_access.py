"""Raw accesses have no bounds: past a buffer they reach exactly the bytes that lie there."""

from __future__ import annotations

import pytest
import torch

from poolbisect.errors import InfrastructureError
from poolbisect.memory.arena import Arena, Buffer, IllegalAccessError
from poolbisect.memory.guard import Guard, MemoryMode

MIB = 1 << 20
KINDS = [torch.float32, torch.int32, torch.int64]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
every_mode = pytest.mark.parametrize("mode", list(MemoryMode), ids=str)
every_shape = pytest.mark.parametrize("shape", [(128,), (64, 2), (32, 2, 4)], ids=str)


def make_arena(device: str, mode: MemoryMode = MemoryMode.GUARD) -> Arena:
    return Arena(device, 4 * MIB, Guard(mode))


def content(buffer: Buffer) -> bytes:
    """A buffer's bytes, from its owner's tensor."""
    return buffer.tensor.cpu().contiguous().numpy().tobytes()


def fill(buffer: Buffer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(-1000, 1000, tuple(buffer.tensor.shape), generator=generator)
    buffer.tensor.copy_(values.to(buffer.tensor.dtype))


def at(buffer: Buffer, *indices: int) -> torch.Tensor:
    return torch.tensor(indices, device=buffer.arena.device)


def values_for(buffer: Buffer, count: int, seed: int = 9) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(1, 1000, (count, *buffer.tensor.shape[1:]), generator=generator)
    return values.to(buffer.tensor.dtype).to(buffer.arena.device)


@every_kind
@every_shape
def test_within_bounds_a_raw_access_is_an_ordinary_one(
    device: str, kind: torch.dtype, shape: tuple[int, ...]
) -> None:
    buffer = make_arena(device).allocate("a", shape, kind)
    assert not buffer.tensor.any(), "buffers start zeroed"
    fill(buffer, 1)
    index = at(buffer, 5, 0, shape[0] - 1, 5)
    assert torch.equal(buffer.read_rows(index, "abcd"), buffer.tensor[index])
    expected = buffer.tensor.clone()
    expected[at(buffer, 3, 7)] = values_for(buffer, 2)
    buffer.write_rows(at(buffer, 3, 7), values_for(buffer, 2), "ab")
    assert torch.equal(buffer.tensor, expected)


@every_kind
@every_shape
@pytest.mark.parametrize("neighbour_kind", KINDS, ids=str)
def test_one_row_past_the_end_is_the_head_of_the_neighbour(
    device: str, kind: torch.dtype, shape: tuple[int, ...], neighbour_kind: torch.dtype
) -> None:
    arena = make_arena(device)
    buffer = arena.allocate("a", shape, kind)
    neighbour = arena.allocate("b", (128,), neighbour_kind)
    assert neighbour.offset == buffer.offset + buffer.size, "the case is built without slack"
    fill(buffer, 1)
    fill(neighbour, 2)
    own, theirs, width = content(buffer), content(neighbour), buffer.row_bytes

    read = buffer.read_rows(at(buffer, shape[0]), "r")
    assert read.shape == (1, *shape[1:])
    assert read.cpu().numpy().tobytes() == theirs[:width]

    written = values_for(buffer, 1)
    buffer.write_rows(at(buffer, shape[0]), written, "r")
    assert content(buffer) == own
    assert content(neighbour) == written.cpu().numpy().tobytes() + theirs[width:]
    assert torch.equal(buffer.read_rows(at(buffer, shape[0]), "r"), written), "it reads back"


@every_kind
@every_shape
def test_a_negative_index_is_the_tail_of_the_buffer_before(
    device: str, kind: torch.dtype, shape: tuple[int, ...]
) -> None:
    arena = make_arena(device)
    before = arena.allocate("before", (128,), torch.int32)
    buffer = arena.allocate("a", shape, kind)
    fill(before, 1)
    fill(buffer, 2)
    own, theirs, width = content(buffer), content(before), buffer.row_bytes
    read = buffer.read_rows(at(buffer, -1), "r")
    assert read.cpu().numpy().tobytes() == theirs[-width:]
    written = values_for(buffer, 1)
    buffer.write_rows(at(buffer, -1), written, "r")
    assert content(before) == theirs[:-width] + written.cpu().numpy().tobytes()
    assert content(buffer) == own


def test_a10_a_row_in_rounding_slack_harms_no_buffer_and_the_record_says_so(device: str) -> None:
    arena = make_arena(device)
    buffer = arena.allocate("a", (3, 25), torch.float32)
    neighbour = arena.allocate("b", (128,), torch.int32)
    fill(buffer, 1)
    fill(neighbour, 2)
    before = content(buffer), content(neighbour)
    written = values_for(buffer, 1)
    buffer.write_rows(at(buffer, 3), written, "r")
    assert torch.equal(buffer.read_rows(at(buffer, 3), "r"), written)
    assert (content(buffer), content(neighbour)) == before
    assert (arena.guard.reads, arena.guard.writes) == (1, 1)
    assert arena.guard.tallies["a", 3].hit == ("rounding slack",)
    assert not arena.guard.victims


def test_a_row_may_straddle_slack_and_the_neighbour(device: str) -> None:
    arena = make_arena(device)
    buffer = arena.allocate("a", (3, 25), torch.float32)
    neighbour = arena.allocate("b", (128,), torch.int32)
    fill(neighbour, 2)
    theirs = content(neighbour)
    written = values_for(buffer, 1)
    buffer.write_rows(at(buffer, 5), written, "r")
    reached = 600 - 512
    assert content(neighbour) == written.cpu().numpy().tobytes()[-reached:] + theirs[reached:]
    first = arena.guard.first
    assert first is not None
    assert [str(hit) for hit in first.hit] == ["rounding slack", "b[0..21]"]


def test_memory_no_buffer_ever_took_is_named_so(device: str) -> None:
    arena = make_arena(device)
    buffer = arena.allocate("a", (8, 64), torch.float32)
    buffer.write_rows(at(buffer, 8), values_for(buffer, 1), "r")
    assert arena.guard.tallies["a", 8].hit == ("free memory",)


def test_an_access_sees_buffers_allocated_after_an_earlier_one(device: str) -> None:
    arena = make_arena(device)
    buffer = arena.allocate("a", (128, 256), torch.float32)
    buffer.read_rows(at(buffer, 128), "r")
    for number in range(15):
        arena.allocate(f"b{number}", (128, 256), torch.float32)
    last = arena.allocate("last", (128, 256), torch.int32)
    assert last.offset >= 2 * MIB, "it needed another segment"
    fill(last, 3)
    index = (last.offset - buffer.offset) // buffer.row_bytes
    read = buffer.read_rows(at(buffer, index), "r")
    assert read.cpu().numpy().tobytes() == content(last)[: buffer.row_bytes]


@every_mode
@pytest.mark.parametrize("index", [-1, -(10**12), 2048, 10**12], ids=str)
def test_leaving_the_mapped_memory_is_an_illegal_access(
    device: str, mode: MemoryMode, index: int
) -> None:
    arena = make_arena(device, mode)
    buffer = arena.allocate("a", (16, 256), torch.float32)
    assert arena.mapped == 2048 * buffer.row_bytes
    fill(buffer, 1)
    before = content(buffer)
    with pytest.raises(IllegalAccessError, match=rf"a: index {index} "):
        buffer.read_rows(at(buffer, 0, index), "rs")
    with pytest.raises(IllegalAccessError, match=rf"a: index {index} "):
        buffer.write_rows(at(buffer, 0, index), values_for(buffer, 2), "rs")
    assert content(buffer) == before, "nothing is moved by a batch that crashes"


@pytest.mark.parametrize("mode", [MemoryMode.SILENT, MemoryMode.GUARD], ids=str)
def test_the_last_mapped_row_is_no_crash(device: str, mode: MemoryMode) -> None:
    buffer = make_arena(device, mode).allocate("a", (16, 256), torch.float32)
    buffer.write_rows(at(buffer, 2047), values_for(buffer, 1), "r")
    assert torch.equal(buffer.read_rows(at(buffer, 2047), "r"), values_for(buffer, 1))


def test_a_crash_is_on_record_with_what_led_to_it(device: str) -> None:
    arena = make_arena(device)
    buffer = arena.allocate("a", (16, 256), torch.float32)
    with pytest.raises(IllegalAccessError):
        buffer.read_rows(at(buffer, -1), "r")
    first = arena.guard.first
    assert first is not None
    assert (first.index, first.request, first.kind) == (-1, "r", "read")
    assert first.hit, "what it reached has a name, be it only that nothing is mapped there"
    assert "free memory" not in str(first), "memory that is not mapped is not free memory"


def test_no_row_at_all_is_a_fine_access(device: str) -> None:
    arena = make_arena(device, MemoryMode.STRICT)
    buffer = arena.allocate("a", (4, 2), torch.float32)
    nothing = torch.zeros(0, dtype=torch.int64, device=device)
    assert buffer.read_rows(nothing).shape == (0, 2)
    buffer.write_rows(nothing, torch.zeros((0, 2), device=device))


@every_kind
def test_cells_are_addressed_by_row_and_column(device: str, kind: torch.dtype) -> None:
    buffer = make_arena(device).allocate("table", (16, 8), kind)
    fill(buffer, 1)
    rows, columns = at(buffer, 3, 0, 15)[:, None], at(buffer, 0, 7, 2)
    assert torch.equal(buffer.read_cells(rows, columns), buffer.tensor[rows, columns])


@every_mode
def test_cells_past_the_mapped_memory_are_an_illegal_access(device: str, mode: MemoryMode) -> None:
    buffer = make_arena(device, mode).allocate("table", (16, 8), torch.int32)
    with pytest.raises(IllegalAccessError, match="table"):
        buffer.read_cells(at(buffer, 10**9), at(buffer, 0))


def test_buffers_of_a_region_follow_each_other_and_the_rest_belongs_to_nobody(device: str) -> None:
    arena = make_arena(device)
    arena.allocate("elsewhere", (128,), torch.int32)
    arena.open_region(8192)
    first = arena.allocate("first", (100,), torch.int32)
    arena.skip(1024)
    second = arena.allocate("second", (128,), torch.int32)
    arena.close_region()
    outside = arena.allocate("outside", (128,), torch.int32)
    assert second.offset == first.offset + 512 + 1024
    assert not first.offset <= outside.offset < first.offset + 8192
    first.read_rows(at(first, 128), "r")
    assert arena.guard.tallies["first", 128].hit == ("free memory",)


def test_a_region_or_an_arena_that_is_too_small_is_said_to_be(device: str) -> None:
    arena = make_arena(device)
    arena.open_region(1024)
    with pytest.raises(InfrastructureError, match="no room"):
        arena.allocate("a", (2000,), torch.float32)
    with pytest.raises(InfrastructureError, match="too small: big"):
        make_arena(device).allocate("big", (8 * MIB,), torch.float32)
