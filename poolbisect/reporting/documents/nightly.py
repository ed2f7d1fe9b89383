"""The fields of a `poolbisect.nightly/1` document that reports show."""

from __future__ import annotations

from typing import Any

import msgspec

from poolbisect.reporting.documents.bisect import Entry
from poolbisect.reporting.documents.run import BaselineScore, Document, Interval


class Finding(Document, frozen=True, kw_only=True):
    """A regression, or the end of one: `state` is new, persistent or fixed."""

    state: str
    scenario: str
    subject: str
    text: str = ""
    drop: float | None = None
    p_value: float | None = None
    culprit: Entry | None = None
    role: str | None = None
    since: str | None = None
    nights: int | None = None


class Row(Document, frozen=True, kw_only=True):
    """One subject of one scenario tonight; `mean7` and `sd7` are of the seven nights before."""

    scenario: str
    subject: str
    accuracy: float | None = None
    interval: Interval | None = None
    correct: int | None = None
    answered: int | None = None
    verdict: str = ""
    mean7: float | None = None
    sd7: float | None = None
    best: float | None = None
    nights: int = 0
    baseline: float | str | BaselineScore | None = None
    gate: float | str | None = None
    report: str | None = None
    role: str | None = None
    reason: str = ""
    trend: str | None = None
    accept_length: float | None = None

    @property
    def series(self) -> tuple[str, str]:
        """What stays the same from night to night, whatever subject is under test."""
        return self.scenario, self.role or self.subject


class Failure(Document, frozen=True, kw_only=True):
    scenario: str
    text: str


class NightlyDocument(Document, frozen=True, kw_only=True):
    schema: str
    verdict: str
    exit_code: int
    started: str
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    rows: tuple[Row, ...] = ()
    drift: tuple[str, ...] = ()
    gate_health: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    command: tuple[str, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    report: str = ""
