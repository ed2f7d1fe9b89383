"""Measurements: what a probe found out about one subject, and how the probe ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Ended(StrEnum):
    """How a measurement ended. Only `measured` carries a whole score."""

    MEASURED = "measured"
    CRASHED = "crashed"
    STOPPED = "stopped"
    PARTIAL = "partial"
    BUILD_FAILED = "build_failed"
    TIMED_OUT = "timed_out"
    INFRA = "infra"
    NOT_APPLICABLE = "not_applicable"


class Outcome(StrEnum):
    """What became of one question."""

    RIGHT = "right"
    WRONG = "wrong"
    INVALID = "invalid"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Answer:
    """One question: what was asked, said and expected, and which slot it ran on.

    `accept_length` is accepted tokens per verify step, None where there was none.
    """

    id: int
    prompt: str
    expected: int
    text: str
    outcome: Outcome
    rank: int
    slot: int | None
    finish: str | None
    accept_length: float | None
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ShortAccess:
    """Out-of-range accesses to one index of one buffer, summed over the ranks."""

    buffer: str
    space: str
    rows: int
    index: int
    hit: tuple[str, ...]
    first_step: int
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class PlacedBuffer:
    """Where a buffer lies in a rank's device memory: its first byte, its bytes, its rows."""

    name: str
    offset: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class MemoryEvents:
    """What the guard saw. `watched` is False in silent mode: nothing was looked at.

    `offenders` are requests that accessed out of range, `victims` other requests whose live bytes
    were overwritten; `padded_writes` counts writes of padded rows to an index somebody owned, and
    `padded_targets` names those indices. `arena` holds the buffers that were accessed out of range
    and those around them, without leaving one out, in order of address; empty without such access.
    """

    watched: bool
    reads: int = 0
    writes: int = 0
    buffers: tuple[ShortAccess, ...] = ()
    first: str | None = None
    offenders: tuple[int, ...] = ()
    victims: tuple[int, ...] = ()
    padded_writes: int = 0
    padded_targets: tuple[str, ...] = ()
    non_finite_padding: tuple[str, ...] = ()
    arena: tuple[PlacedBuffer, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotUse:
    """How far a run reached into the request slots of all ranks.

    `last_slot` is the largest index a pool can hand out; `coverage` the share of slots used.
    """

    last_slot: int
    last_slot_used: bool
    coverage: float
    requests_on_last_slot: int
    allocations: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """One subject measured by one probe. Times in seconds; `tokens` counts generated ones."""

    subject: str
    ended: Ended
    detail: str
    asked: int
    answers: tuple[Answer, ...]
    accept_length: float | None
    slots: SlotUse | None
    memory: MemoryEvents
    seconds: float
    tokens: int
    contract: tuple[dict[str, Any], ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        return sum(answer.outcome is not Outcome.UNANSWERED for answer in self.answers)

    @property
    def correct(self) -> int:
        return sum(answer.outcome is Outcome.RIGHT for answer in self.answers)

    @property
    def invalid(self) -> int:
        return sum(answer.outcome is Outcome.INVALID for answer in self.answers)

    @property
    def accuracy(self) -> float | None:
        """Right answers among answered questions; None without any, or when the run broke off."""
        whole = self.ended in (Ended.MEASURED, Ended.PARTIAL)
        return self.correct / self.answered if self.answered and whole else None

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0

    def accept_lengths(self) -> dict[int, float]:
        """Question id to accept length, of the questions that had a verify step."""
        return {a.id: a.accept_length for a in self.answers if a.accept_length is not None}

    def outcomes(self) -> dict[int, bool]:
        """Question id to answered rightly, of the answered questions."""
        return {
            answer.id: answer.outcome is Outcome.RIGHT
            for answer in self.answers
            if answer.outcome is not Outcome.UNANSWERED
        }
