"""Device memory on a CPU: one flat allocation, and accessors that do not know where a buffer ends.

PyTorch checks bounds on the CPU, a GPU kernel does not. What a GPU would do unchecked goes through
`Buffer.read_rows`, `write_rows` and `read_cells`, which compute an address from base, row and
stride: past a buffer's last row they reach slack or the neighbour, as on the device. Only leaving
the mapped segments is an error (IllegalAccessError, what a device reports as a crash).
Everything works alike on CPU and CUDA tensors.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from poolbisect.errors import InfrastructureError
from poolbisect.memory.guard import Access, Guard, HitRange, PaddedWrite, request_of
from poolbisect.memory.placement import Block, CachingPlacement, rounded
from poolbisect.memory.spaces import IndexSpace

UNMAPPED = "unmapped memory"


class IllegalAccessError(RuntimeError):
    """An address outside the mapped memory: on a GPU, 'illegal memory access'."""


@dataclass(slots=True)
class Arena:
    """One rank's device memory. `capacity` is in bytes; untouched pages cost nothing."""

    device: str
    capacity: int
    guard: Guard
    placement: CachingPlacement = field(default_factory=CachingPlacement)
    buffers: list[Buffer] = field(default_factory=list)
    _storage: Tensor = field(init=False)
    _region: Block | None = None

    def __post_init__(self) -> None:
        self._storage = torch.zeros(self.capacity, dtype=torch.uint8, device=self.device)

    @property
    def mapped(self) -> int:
        return self.placement.mapped

    def allocate(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype, space: IndexSpace | None = None
    ) -> Buffer:
        """A zeroed buffer of `shape` whose first axis is indexed by `space` (None: batch rows)."""
        size = math.prod(shape) * dtype.itemsize
        block = self._next_of_region(size) if self._region else self.placement.place(size)
        return self._carve(name, shape, dtype, space, block)

    def open_region(self, size: int) -> None:
        """Until `close_region`, buffers follow each other directly in a segment of `size` bytes."""
        self._region = self.placement.new_segment(size)

    def skip(self, size: int) -> None:
        """Leave `size` bytes of the open region to nobody."""
        self._next_of_region(size)

    def close_region(self) -> None:
        """Whatever is left of the region stays mapped and belongs to nobody."""
        self._region = None

    def _next_of_region(self, size: int) -> Block:
        assert self._region is not None
        size = rounded(size)
        if size > self._region.size:
            raise InfrastructureError(f"a region of {self._region.size} B has no room for {size} B")
        block = Block(self._region.offset, size)
        self._region = Block(block.end, self._region.size - size)
        return block

    def _carve(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        space: IndexSpace | None,
        block: Block,
    ) -> Buffer:
        if self.mapped > self.capacity:
            raise InfrastructureError(
                f"the arena of {self.capacity} B is too small: {name} needs bytes up to "
                f"{self.mapped}"
            )
        size = math.prod(shape) * dtype.itemsize
        tensor = self._storage[block.offset : block.offset + size].view(dtype).view(shape)
        buffer = Buffer(self, name, space, tensor, block.offset)
        self.buffers.append(buffer)
        self.buffers.sort(key=lambda other: other.offset)
        return buffer

    def at(self, start: int, end: int) -> tuple[tuple[HitRange, Buffer | None], ...]:
        """Who owns bytes start..end-1: buffers with rows, and the gaps between them."""
        if end <= 0 or start >= self.mapped:
            return ((HitRange(UNMAPPED), None),)
        found: list[tuple[HitRange, Buffer | None]] = []
        if start < 0:
            found.append((HitRange(UNMAPPED), None))
        offsets = [buffer.offset for buffer in self.buffers]
        position = max(start, 0)
        beyond = end > self.mapped
        end = min(end, self.mapped)
        while position < end:
            at = bisect_right(offsets, position) - 1
            buffer = self.buffers[at] if at >= 0 else None
            if buffer is not None and position < buffer.offset + buffer.size:
                stop = min(end, buffer.offset + buffer.size)
                first = (position - buffer.offset) // buffer.row_bytes
                last = (stop - 1 - buffer.offset) // buffer.row_bytes
                found.append((HitRange(buffer.name, first, last), buffer))
            else:
                stop = min(end, offsets[at + 1] if at + 1 < len(offsets) else end)
                rounding_ends = 0 if buffer is None else buffer.offset + rounded(buffer.size)
                name = "rounding slack" if position < rounding_ends else "free memory"
                if name == "rounding slack":
                    stop = min(stop, rounding_ends)
                found.append((HitRange(name), None))
            position = stop
        if beyond:
            found.append((HitRange(UNMAPPED), None))
        return tuple(found)

    def elements(self, dtype: torch.dtype) -> Tensor:
        """The whole mapped memory as one flat tensor of `dtype`."""
        usable = self.mapped // dtype.itemsize * dtype.itemsize
        return self._storage[:usable].view(dtype)


@dataclass(slots=True, eq=False)
class Buffer:
    """A tensor in the arena whose first axis is indexed by `space`.

    `tensor` is the buffer as its owner sees it, with bounds. The raw accessors have none.
    """

    arena: Arena
    name: str
    space: IndexSpace | None
    tensor: Tensor
    offset: int
    row_bytes: int = field(init=False)
    _view: Tensor | None = None
    _lead: int = 0
    _mapped: int = -1

    def __post_init__(self) -> None:
        self.row_bytes = math.prod(self.tensor.shape[1:]) * self.tensor.dtype.itemsize

    @property
    def rows(self) -> int:
        return self.tensor.shape[0]

    @property
    def size(self) -> int:
        return self.rows * self.row_bytes

    def read_rows(
        self,
        index: Tensor,
        requests: Sequence[str | None] | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Rows at `index` (any shape, int64) as index.shape + row shape, without bounds.

        `requests` names the request of each row of `index`; rows beyond it are padded rows. None:
        who reads is not known. `out`, contiguous and of the result's shape, receives the rows.
        """
        view, shifted = self._addressed(index, requests, "read")
        if out is not None:
            torch.index_select(
                view, 0, shifted.reshape(-1), out=out.view(index.numel(), view.shape[1])
            )
            return out
        flat = view.index_select(0, shifted.reshape(-1))
        return flat.view(*index.shape, *self.tensor.shape[1:])

    def write_rows(
        self, index: Tensor, values: Tensor, requests: Sequence[str | None] | None = None
    ) -> None:
        """Set rows at `index` to `values` (index.shape + row shape), without bounds."""
        view, shifted = self._addressed(index, requests, "write")
        if requests is not None and len(requests) < index.shape[0] and self.arena.guard.watching:
            self._watch_padded_writes(index[len(requests) :], values[len(requests) :])
        view.index_copy_(0, shifted.reshape(-1), values.reshape(-1, view.shape[1]))

    def read_cells(
        self, rows: Tensor, columns: Tensor, requests: Sequence[str | None] | None = None
    ) -> Tensor:
        """Single elements [row, column] of a two-dimensional buffer, without bounds on either.

        A column beyond the row reaches into the rows after it, and is watched as such.
        """
        cells = self.arena.elements(self.tensor.dtype)
        address = self._cell_addresses(rows, columns, cells.shape[0], requests, "read")
        return cells.index_select(0, address.reshape(-1)).view(address.shape)

    def write_cells(
        self,
        rows: Tensor,
        columns: Tensor,
        values: Tensor,
        requests: Sequence[str | None] | None = None,
    ) -> None:
        """Set single elements [row, column] of a two-dimensional buffer, without bounds."""
        cells = self.arena.elements(self.tensor.dtype)
        address = self._cell_addresses(rows, columns, cells.shape[0], requests, "write")
        if address.numel():
            cells.index_copy_(0, address.reshape(-1), values.reshape(-1).to(cells.dtype))

    def _cell_addresses(
        self,
        rows: Tensor,
        columns: Tensor,
        mapped: int,
        requests: Sequence[str | None] | None,
        kind: str,
    ) -> Tensor:
        width = self.tensor.shape[1]
        address = self.offset // self.tensor.dtype.itemsize + rows * width + columns
        if address.numel() == 0:
            return address
        low, high = _bounds(columns)
        reached = rows
        if low < 0 or high >= width:
            reached = rows + columns.div(width, rounding_mode="floor")
        cells = (address, self.tensor.dtype.itemsize)
        self._require_mapped(address, reached, 0, mapped, requests, kind, cells)
        if self.arena.guard.watching:
            self._watch(reached, requests, kind, cells)
        return address

    def _addressed(
        self, index: Tensor, requests: Sequence[str | None] | None, kind: str
    ) -> tuple[Tensor, Tensor]:
        view = self._unbounded()
        if index.numel():
            low, high = -self._lead, view.shape[0] - self._lead
            self._require_mapped(index, index, low, high, requests, kind)
            if self.arena.guard.watching:
                self._watch(index, requests, kind)
        return view, index + self._lead if self._lead else index

    def _require_mapped(
        self,
        address: Tensor,
        index: Tensor,
        low: int,
        high: int,
        requests: Sequence[str | None] | None,
        kind: str,
        cells: tuple[Tensor, int] | None = None,
    ) -> None:
        """IllegalAccessError, put on record first, if an address is outside low..high-1."""
        smallest, largest = _bounds(address)
        if low <= smallest and largest < high:
            return
        outside = ((address < low) | (address >= high)).nonzero()[0].tolist()
        bad = int(index.expand(address.shape)[tuple(outside)])
        if self.arena.guard.watching:
            self._watch(index.expand(address.shape), requests, kind, cells, fatal=True)
        raise IllegalAccessError(
            f"{self.name}: index {bad} ({kind}) lies outside the mapped memory"
        )

    def _unbounded(self) -> Tensor:
        """The mapped memory as rows of this buffer's stride, on the grid its base defines."""
        if self._view is None or self._mapped != self.arena.mapped:
            itemsize = self.tensor.dtype.itemsize
            phase = self.offset % self.row_bytes
            count = (self.arena.mapped - phase) // self.row_bytes
            elements = self.arena.elements(self.tensor.dtype)
            first, width = phase // itemsize, self.row_bytes // itemsize
            self._view = elements[first : first + count * width].view(count, width)
            self._lead = self.offset // self.row_bytes
            self._mapped = self.arena.mapped
        return self._view

    def _watch(
        self,
        index: Tensor,
        requests: Sequence[str | None] | None,
        kind: str,
        cells: tuple[Tensor, int] | None = None,
        *,
        fatal: bool = False,
    ) -> None:
        """Put accesses outside the rows on record: whole rows, or the elements `cells` names.

        `cells` are element addresses, to whose shape `index` broadcasts, and an element's size.
        """
        low, high = _bounds(index)
        if low >= 0 and high < self.rows:
            return
        if cells is not None:
            index = index.expand(cells[0].shape)
        for position in ((index < 0) | (index >= self.rows)).nonzero().tolist():
            row, request = int(index[tuple(position)]), request_of(position[0], requests or ())
            start, size = self.offset + row * self.row_bytes, self.row_bytes
            if cells is not None:
                start, size = int(cells[0][tuple(position)]) * cells[1], cells[1]
            access = self._access(row, request, kind, start, size)
            self.arena.guard.out_of_range(access, fatal=fatal)

    def _access(self, index: int, request: str | None, kind: str, start: int, size: int) -> Access:
        guard = self.arena.guard
        reached = self.arena.at(start, start + size)
        return Access(
            buffer=self.name,
            space=self.space.name if self.space else "batch row",
            index=index,
            rows=self.rows,
            kind=kind,
            rank=guard.rank,
            step=guard.step,
            phase=guard.phase,
            request=request,
            hit=tuple(hit for hit, _ in reached),
            victims=_victims(reached, request) if kind == "write" else (),
        )

    def _watch_padded_writes(self, index: Tensor, values: Tensor) -> None:
        guard = self.arena.guard
        if values.is_floating_point() and not bool(values.isfinite().all()):
            guard.non_finite_padding.add(self.name)
        if self.space is None:
            return
        for row in index.reshape(-1).tolist():
            owner = self.space.owners.get(row)
            if owner is not None:
                guard.padded_write(
                    PaddedWrite(self.name, self.space.name, row, guard.rank, guard.step, owner)
                )


def _victims(
    reached: tuple[tuple[HitRange, Buffer | None], ...], writer: str | None
) -> tuple[str, ...]:
    """Other requests that own rows among the reached ones and have yet to read them."""
    found = set()
    for hit, buffer in reached:
        if buffer is None or buffer.space is None or hit.first_row is None:
            continue
        assert hit.last_row is not None
        for row in range(hit.first_row, hit.last_row + 1):
            owner = buffer.space.owners.get(row)
            if owner is not None and owner != writer:
                found.add(owner)
    return tuple(sorted(found))


def _bounds(index: Tensor) -> tuple[int, int]:
    smallest, largest = torch.aminmax(index)
    return int(smallest), int(largest)
