"""The guard: sees every raw access, and writes down those that break the contract.

`silent` looks at nothing, as the device does; `guard` moves the same bytes and records; `strict`
raises at the first breach. The three modes move identical bytes up to that point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class MemoryMode(StrEnum):
    SILENT = "silent"
    GUARD = "guard"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class HitRange:
    """Bytes of another buffer (or of nobody) that an access reached."""

    name: str
    first_row: int | None = None
    last_row: int | None = None

    def __str__(self) -> str:
        if self.first_row is None:
            return self.name
        return f"{self.name}[{self.first_row}..{self.last_row}]"


@dataclass(frozen=True, slots=True)
class Access:
    """One access outside a buffer's rows: who, where, and whose bytes were really touched."""

    buffer: str
    space: str
    index: int
    rows: int
    kind: str
    rank: int
    step: int
    phase: str
    request: str | None
    hit: tuple[HitRange, ...]
    victims: tuple[str, ...] = ()

    def __str__(self) -> str:
        who = f"request {self.request}" if self.request is not None else "a padded row"
        reached = ", ".join(map(str, self.hit))
        verb = "read" if self.kind == "read" else "wrote"
        return (
            f"{who} {verb} {self.buffer}[{self.index}] of {self.rows} rows "
            f"(index space: {self.space}) in step {self.step} ({self.phase}) on rank {self.rank}, "
            f"reaching {reached}"
        )


@dataclass(frozen=True, slots=True)
class PaddedWrite:
    """A padded row wrote to an index that a live request owns."""

    buffer: str
    space: str
    index: int
    rank: int
    step: int
    owner: str


class OutOfRangeError(RuntimeError):
    """Strict mode met its first breach of the contract; `access` tells which."""

    def __init__(self, access: Access) -> None:
        super().__init__(str(access))
        self.access = access


@dataclass(slots=True)
class BufferTally:
    """All out-of-range accesses to one index of one buffer."""

    buffer: str
    space: str
    rows: int
    index: int
    hit: tuple[str, ...]
    first_step: int
    reads: int = 0
    writes: int = 0


@dataclass(slots=True)
class Guard:
    """Collects breaches of one rank. `step` and `phase` are set by the engine as it goes."""

    mode: MemoryMode
    rank: int = 0
    step: int = 0
    phase: str = ""
    reads: int = 0
    writes: int = 0
    first: Access | None = None
    tallies: dict[tuple[str, int], BufferTally] = field(default_factory=dict)
    victims: set[str] = field(default_factory=set)
    offenders: set[str] = field(default_factory=set)
    padded_writes: list[PaddedWrite] = field(default_factory=list)
    padded_write_count: int = 0
    non_finite_padding: set[str] = field(default_factory=set)

    @property
    def watching(self) -> bool:
        return self.mode is not MemoryMode.SILENT

    def out_of_range(self, access: Access, *, fatal: bool = False) -> None:
        """Put an access on record; in strict mode raise, unless it is `fatal` by itself."""
        if self.first is None:
            self.first = access
        if access.kind == "read":
            self.reads += 1
        else:
            self.writes += 1
        if access.request is not None:
            self.offenders.add(access.request)
        self.victims.update(access.victims)
        key = (access.buffer, access.index)
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = BufferTally(
                buffer=access.buffer,
                space=access.space,
                rows=access.rows,
                index=access.index,
                hit=tuple(hit.name for hit in access.hit),
                first_step=access.step,
            )
        if access.kind == "read":
            tally.reads += 1
        else:
            tally.writes += 1
        if self.mode is MemoryMode.STRICT and not fatal:
            raise OutOfRangeError(access)

    def padded_write(self, write: PaddedWrite, keep: int = 20) -> None:
        self.padded_write_count += 1
        if len(self.padded_writes) < keep:
            self.padded_writes.append(write)


def request_of(row: int, requests: Sequence[str | None]) -> str | None:
    """The request a batch row works for; None for a padded row."""
    return requests[row] if row < len(requests) else None
