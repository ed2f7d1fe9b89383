"""Memory with one row per slot and no bounds: what a pool's tensor is to an unchecked kernel.

Upstream's pool classes index their mappings with torch, which raises past the end; a kernel that
is handed the same mapping reads and writes whatever lies there. Which of the two faces a fault
shows is decided by the memory a pool is given, a tensor or this, and never by the pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from poolbisect.memory.arena import Buffer


class UncheckedRows:
    """A buffer in device memory as a pool sees it: a SlotRows that knows of no last row.

    `shape` and `dtype` are the buffer's own, so that it may stand in for a tensor.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self._requests: Sequence[str | None] | None = None

    @property
    def shape(self) -> torch.Size:
        return self.buffer.tensor.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.buffer.tensor.dtype

    @contextmanager
    def on_behalf_of(self, requests: Sequence[str | None]) -> Iterator[None]:
        """Name the requests, in order, whose rows the pool accesses meanwhile."""
        before, self._requests = self._requests, requests
        try:
            yield
        finally:
            self._requests = before

    def __getitem__(self, index: Any) -> Tensor:
        return self.buffer.read_rows(*self._rows(index))[0 if isinstance(index, int) else ...]

    def __setitem__(self, index: Any, values: Any) -> None:
        rows, requests = self._rows(index)
        data = torch.as_tensor(values, dtype=self.dtype, device=rows.device)
        self.buffer.write_rows(rows, data.expand(*rows.shape, *self.shape[1:]), requests)

    def zero_(self) -> UncheckedRows:
        """Zero the rows the buffer really has: filling a tensor needs no index."""
        self.buffer.tensor.zero_()
        return self

    def _rows(self, index: Any) -> tuple[Tensor, Sequence[str | None] | None]:
        device = self.buffer.tensor.device
        rows = torch.as_tensor(index, dtype=torch.int64, device=device)
        return rows.reshape(1) if rows.ndim == 0 else rows, self._requests
