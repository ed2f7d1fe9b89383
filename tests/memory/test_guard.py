"""The guard writes down every breach of the contract: who, where, and whose bytes."""

from __future__ import annotations

import pytest
import torch

from poolbisect.memory.arena import Arena, Buffer
from poolbisect.memory.guard import Guard, MemoryMode, OutOfRangeError, PaddedWrite
from poolbisect.memory.spaces import IndexSpace

MIB = 1 << 20
KINDS = [torch.float32, torch.int32, torch.int64]


class Neighbours:
    """A buffer of 8 rows by request slot, and right behind it one of future indices."""

    def __init__(
        self, device: str, mode: MemoryMode = MemoryMode.GUARD, kind: torch.dtype = torch.float32
    ) -> None:
        self.arena = Arena(device, 4 * MIB, Guard(mode, rank=1, step=7, phase="decode"))
        self.slots = IndexSpace("request slot", 1, 8)
        self.futures = IndexSpace("future index", 1, 255)
        width = 256 // kind.itemsize
        self.short = self.arena.allocate("short", (8, 2, width // 2), kind, self.slots)
        self.behind = self.arena.allocate("behind", (256,), torch.int32, self.futures)

    @property
    def guard(self) -> Guard:
        return self.arena.guard

    def write(self, indices: list[int], requests: list[str | None]) -> None:
        index = torch.tensor(indices, device=self.arena.device)
        values = torch.ones((len(indices), *self.short.tensor.shape[1:]), device=index.device)
        self.short.write_rows(index, values.to(self.short.tensor.dtype), requests)

    def read(self, indices: list[int], requests: list[str | None]) -> None:
        self.short.read_rows(torch.tensor(indices, device=self.arena.device), requests)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_write_past_the_end_is_recorded_whole(device: str, kind: torch.dtype) -> None:
    parts = Neighbours(device, kind=kind)
    parts.futures.take([3, 64], ["victim", "further away"])
    parts.write([2, 8], ["good", "culprit"])
    first = parts.guard.first
    assert first is not None
    assert (first.buffer, first.space, first.index, first.rows) == ("short", "request slot", 8, 8)
    assert (first.kind, first.request, first.rank) == ("write", "culprit", 1)
    assert (first.step, first.phase) == (7, "decode")
    assert [(hit.name, hit.first_row, hit.last_row) for hit in first.hit] == [("behind", 0, 63)]
    assert first.victims == ("victim",)
    for word in ("culprit", "short[8]", "8 rows", "request slot", "step 7", "behind[0..63]"):
        assert word in str(first)


def test_accesses_within_bounds_leave_no_trace(device: str) -> None:
    parts = Neighbours(device)
    parts.slots.take([1, 7], ["a", "b"])
    parts.write([1, 7], ["a", "b"])
    parts.read([0, 1, 7], ["a", "b", None])
    guard = parts.guard
    assert (guard.reads, guard.writes, guard.first, guard.tallies) == (0, 0, None, {})
    assert not guard.offenders
    assert guard.padded_write_count == 0


def test_tallies_count_each_index_of_each_buffer(device: str) -> None:
    parts = Neighbours(device)
    parts.read([8, 8, 3], ["a", "b", "c"])
    parts.guard.step = 9
    parts.write([8, 9, -1 + 8], ["a", "b", "c"])
    parts.read([9], ["a"])
    guard = parts.guard
    assert (guard.reads, guard.writes) == (3, 2)
    tallies = {key: (one.reads, one.writes, one.first_step) for key, one in guard.tallies.items()}
    assert tallies == {("short", 8): (2, 1, 7), ("short", 9): (1, 1, 9)}
    assert {one.rows for one in guard.tallies.values()} == {8}
    assert guard.first is not None
    assert (guard.first.index, guard.first.step) == (8, 7), "the first stays the first"
    assert guard.offenders == {"a", "b"}


def test_victims_are_other_owners_of_overwritten_rows_only(device: str) -> None:
    parts = Neighbours(device)
    parts.futures.take([0, 1, 2, 70], ["culprit", "x", "y", "out of reach"])
    parts.read([8], ["culprit"])
    assert not parts.guard.victims, "a read harms nobody else"
    parts.futures.release([2])
    parts.write([8], ["culprit"])
    assert parts.guard.victims == {"x"}, "neither the writer nor who has let go of the row"


def test_rows_without_an_index_space_have_no_victims(device: str) -> None:
    arena = Arena(device, 4 * MIB, Guard(MemoryMode.GUARD))
    short = arena.allocate("short", (2, 64), torch.float32)
    arena.allocate("batch rows", (128,), torch.int32)
    short.write_rows(torch.tensor([2], device=device), torch.ones((1, 64), device=device), ["a"])
    first = arena.guard.first
    assert first is not None
    assert first.space == "batch row"
    assert first.hit[0].name == "batch rows"
    assert not arena.guard.victims


def test_every_index_of_a_wide_batch_is_looked_at(device: str) -> None:
    """An index of shape (rows, columns) belongs, row by row, to the requests."""
    parts = Neighbours(device)
    index = torch.tensor([[0, 8], [9, 1]], device=device)
    assert parts.short.read_rows(index, ["a", "b"]).shape == (2, 2, *parts.short.tensor.shape[1:])
    assert sorted(parts.guard.tallies) == [("short", 8), ("short", 9)]
    assert parts.guard.offenders == {"a", "b"}


def test_a_read_by_a_padded_row_is_recorded_as_such(device: str) -> None:
    parts = Neighbours(device)
    parts.read([1, 8], ["a"])
    first = parts.guard.first
    assert first is not None
    assert first.request is None
    assert "a padded row read short[8]" in str(first)
    assert not parts.guard.offenders


def test_a_padded_row_that_writes_to_a_live_slot_is_caught(device: str) -> None:
    """Case A5's mechanism: padding writes to slot 0 while slot 0 belongs to a request."""
    parts = Neighbours(device)
    parts.slots.take([0, 5], ["live", "other"])
    parts.write([5, 0, 0, 3], ["other"])
    assert parts.guard.padded_write_count == 2
    assert parts.guard.padded_writes[0] == PaddedWrite("short", "request slot", 0, 1, 7, "live")
    assert parts.guard.writes == 0, "it is within bounds"


def test_a_padded_row_may_write_where_nobody_is_and_read_anywhere(device: str) -> None:
    parts = Neighbours(device)
    parts.slots.take([0, 5], ["gone", "other"])
    parts.slots.release([0])
    parts.write([5, 0, 3], ["other"])
    parts.read([5, 5, 5], ["other"])
    assert parts.guard.padded_write_count == 0


def test_silent_mode_looks_at_nothing(device: str) -> None:
    parts = Neighbours(device, MemoryMode.SILENT)
    parts.slots.take([0], ["live"])
    parts.write([8, 0], ["a"])
    guard = parts.guard
    assert (guard.reads, guard.writes, guard.first, guard.padded_write_count) == (0, 0, None, 0)
    assert parts.behind.tensor.any(), "but the bytes are moved"


@pytest.mark.parametrize("kind", ["read", "write"])
def test_strict_mode_stops_at_the_first_and_names_it(device: str, kind: str) -> None:
    parts = Neighbours(device, MemoryMode.STRICT)
    parts.write([1], ["a"])
    before = parts.behind.tensor.clone()
    with pytest.raises(OutOfRangeError) as raised:
        getattr(parts, kind)([2, 9, 8], ["a", "b", "c"])
    access = raised.value.access
    assert (access.buffer, access.index, access.rows, access.request) == ("short", 9, 8, "b")
    for word in ("short[9]", "8 rows", "request b"):
        assert word in str(raised.value)
    assert torch.equal(parts.behind.tensor, before), "nothing is moved by the access it stops at"


def read_cells(buffer: Buffer, row: int) -> None:
    device = buffer.arena.device
    buffer.read_cells(torch.tensor([row], device=device), torch.tensor([0], device=device))


def test_single_cells_are_watched_as_rows_are(device: str) -> None:
    """The guard sees every raw access, whichever accessor makes it."""
    arena = Arena(device, 4 * MIB, Guard(MemoryMode.GUARD))
    table = arena.allocate("table", (8, 16), torch.int32, IndexSpace("request slot", 1, 8))
    arena.allocate("behind", (128,), torch.int32)
    read_cells(table, 7)
    assert arena.guard.reads == 0
    read_cells(table, 8)
    assert arena.guard.reads == 1
    assert arena.guard.tallies["table", 8].hit == ("behind",)
    arena.guard.mode = MemoryMode.STRICT
    with pytest.raises(OutOfRangeError):
        read_cells(table, 8)


def test_non_finite_values_left_in_the_padding_row_are_noticed(device: str) -> None:
    """Row 0 is nobody's; what padded rows leave there is read by the next padded rows."""
    parts = Neighbours(device)
    index = torch.tensor([1, 0], device=device)
    values = torch.ones((2, *parts.short.tensor.shape[1:]), device=device)
    values[1, 0, 0] = float("nan")
    parts.short.write_rows(index, values, ["a"])
    assert parts.guard.non_finite_padding == {"short"}
