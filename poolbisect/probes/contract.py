"""The contract probe: are the buffers as long as the indices need? Milliseconds, no model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolbisect.pools.interface import SubjectPools
from poolbisect.memory.spaces import IndexSpace


@dataclass(frozen=True, slots=True)
class BufferContract:
    """One buffer against its index space: indices `first`..`last` are handed out.

    `missing` rows are lacking; `short_from` is the first index past the buffer, None if none.
    """

    buffer: str
    space: str
    rows: int
    first: int
    last: int

    @property
    def missing(self) -> int:
        return IndexSpace(self.space, self.first, self.last).missing_rows(self.rows)

    @property
    def short_from(self) -> int | None:
        return max(self.rows, self.first) if self.missing else None

    def __str__(self) -> str:
        if not self.missing:
            return f"{self.buffer}: {self.rows} rows hold every {self.space} up to {self.last}"
        rows = "row" if self.missing == 1 else "rows"
        return (
            f"{self.buffer}: {self.rows} rows, but {self.space}s run to {self.last}: "
            f"short by {self.missing} {rows} from {self.space} {self.short_from} on"
        )


def contracts(
    pools: SubjectPools,
    buffers: Iterable[str],
    slots: int,
    pre_alloc_size: int | None = None,
) -> tuple[BufferContract, ...]:
    """The contract of each named buffer on a fresh pool of `slots` request slots."""
    pool = pools.make_pool(slots, 8, "cpu", pre_alloc_size)
    space = IndexSpace("request slot", min(pool.free_slots), max(pool.free_slots))
    return tuple(
        BufferContract(
            buffer, space.name, pools.consumer_rows(buffer, pool), space.first, space.last
        )
        for buffer in buffers
    )
