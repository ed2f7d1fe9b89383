"""The contract probe: are the buffers as long as the indices need? Milliseconds, no model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from poolbisect.errors import NotApplicableError
from poolbisect.memory.spaces import IndexSpace
from poolbisect.pools.interface import MAMBA_MAPPINGS, RequestPool, SubjectPools
from poolbisect.pools.mamba_sizing import MambaSizing

_CONTEXT = 8


class Lack(StrEnum):
    """Why a buffer is too short."""

    PADDING_ROW = "padding row"
    OTHER_SIZE = "other size"


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
    def lacks(self) -> Lack | None:
        """What kind of row is missing; None when none is.

        PADDING_ROW: the buffer has as many rows as there are indices, and they start above 0.
        OTHER_SIZE: it is sized by something that is not the number of indices.
        """
        if not self.missing:
            return None
        counted = self.rows == self.last - self.first + 1
        return Lack.PADDING_ROW if counted else Lack.OTHER_SIZE

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
    mamba: MambaSizing | None = None,
) -> tuple[BufferContract, ...]:
    """The contract of each named buffer on a fresh pool of `slots` request slots.

    With `mamba` the pool is a hybrid one, and its mappings (MAMBA_MAPPINGS) are buffers too: as
    long as the pool's own memory for them. NotApplicableError for a mapping that pool lacks.
    """
    pool = _fresh_pool(pools, slots, pre_alloc_size, mamba)
    space = IndexSpace("request slot", min(pool.free_slots), max(pool.free_slots))
    return tuple(
        BufferContract(buffer, space.name, _rows(pools, buffer, pool), space.first, space.last)
        for buffer in buffers
    )


def _fresh_pool(
    pools: SubjectPools, slots: int, pre_alloc_size: int | None, mamba: MambaSizing | None
) -> RequestPool:
    if mamba is None:
        return pools.make_pool(slots, _CONTEXT, "cpu", pre_alloc_size)
    return pools.make_hybrid_pool(
        slots,
        _CONTEXT,
        "cpu",
        mamba_size=mamba.size,
        pre_alloc_size=pre_alloc_size,
        extra_buffer=mamba.extra_buffer,
        overlap=mamba.overlap,
    )


def _rows(pools: SubjectPools, buffer: str, pool: RequestPool) -> int:
    if buffer not in MAMBA_MAPPINGS:
        return pools.consumer_rows(buffer, pool)
    mapping = getattr(pool, buffer, None)
    if mapping is None:
        raise NotApplicableError(
            f"a pool of {pool.size} request slots has no {buffer}: it takes a mamba pool, and for "
            "ping-pong slots the extra buffer"
        )
    return int(mapping.shape[0])
