"""The fields of a `poolbisect.run/1` document that reports show; docs/result-json.md has all."""

from __future__ import annotations

from typing import Any

import msgspec

Interval = tuple[float, float]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that are not named are passed over, so a report can show a newer minor form."""


class ShortIndex(Document, frozen=True, kw_only=True):
    buffer: str
    space: str
    rows: int
    index: int
    hit: tuple[str, ...] = ()
    first_step: int = 0
    reads: int = 0
    writes: int = 0


class Placed(Document, frozen=True, kw_only=True):
    """A buffer in device memory: bytes `offset` to `offset + bytes` - 1, in `rows` rows."""

    name: str
    offset: int
    bytes: int
    rows: int


class OutOfRange(Document, frozen=True, kw_only=True):
    watched: bool = False
    reads: int = 0
    writes: int = 0
    buffers: tuple[ShortIndex, ...] = ()
    first: str | None = None
    offenders: tuple[int, ...] = ()
    victims: tuple[int, ...] = ()
    padded_writes: int = 0
    padded_targets: tuple[str, ...] = ()
    non_finite_padding: tuple[str, ...] = ()
    arena: tuple[Placed, ...] = ()


class Comparison(Document, frozen=True, kw_only=True):
    n: int
    lost: int
    gained: int
    difference: float
    interval: Interval
    p_value: float
    lost_ids: tuple[int, ...] = ()
    gained_ids: tuple[int, ...] = ()


class Contract(Document, frozen=True, kw_only=True):
    buffer: str
    space: str
    rows: int
    last_index: int
    missing_rows: int = 0
    short_from: int | None = None


class BaselineScore(Document, frozen=True, kw_only=True):
    """The recorded baseline that a reference was compared with."""

    name: str
    mean: float
    spread: float
    spread_kind: str
    gate: float | None = None
    gate_strict: bool = False


class Result(Document, frozen=True, kw_only=True):
    """One subject of a run."""

    subject: str
    ended: str
    detail: str = ""
    asked: int = 0
    answered: int = 0
    correct: int = 0
    invalid: int = 0
    accuracy: float | None = None
    interval: Interval | None = None
    accept_length: float | None = None
    last_slot: int | None = None
    last_slot_used: bool | None = None
    requests_on_last_slot: int | None = None
    slot_coverage: float | None = None
    seconds: float = 0.0
    tokens: int = 0
    tokens_per_second: float = 0.0
    verdict: str
    reason: str = ""
    expected: str | None = None
    as_expected: bool | None = None
    questions_needed: int | None = None
    baseline: str | None = None
    baseline_score: BaselineScore | None = None
    out_of_range: OutOfRange = OutOfRange()
    comparison: Comparison | None = None
    contract: tuple[Contract, ...] = ()
    attribution: str = ""
    workaround: str | None = None
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)


class RunDocument(Document, frozen=True, kw_only=True):
    schema: str
    scenario: str
    verdict: str
    exit_code: int
    started: str
    results: tuple[Result, ...]
    partial: bool = False
    seconds: float = 0.0
    questions: int = 0
    reference: str = ""
    report: str = ""
    command: tuple[str, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    configuration: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)

    def reference_result(self) -> Result | None:
        return next((one for one in self.results if one.subject == self.reference), None)
