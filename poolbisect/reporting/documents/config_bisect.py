"""The fields of a `poolbisect.config-bisect/1` document; docs/config-bisect.md has all."""

from __future__ import annotations

from typing import Any

import msgspec

from poolbisect.reporting.documents.run import Document, Interval


class SwitchStates(Document, frozen=True, kw_only=True):
    """A switch, and its settings in either state."""

    name: str
    off: dict[str, str] = msgspec.field(default_factory=dict)
    on: dict[str, str] = msgspec.field(default_factory=dict)


class Decided(Document, frozen=True, kw_only=True):
    """What was concluded of one configuration, from `launches` launches."""

    on: tuple[str, ...] = ()
    verdict: str
    reason: str = ""
    launches: int = 0


class Vouching(Document, frozen=True, kw_only=True):
    """Launched again before blame: the set, without a member, all but a member, the reference."""

    again: Decided
    without: dict[str, Decided] = msgspec.field(default_factory=dict)
    others_on: dict[str, Decided] = msgspec.field(default_factory=dict)
    reference: Decided | None = None


class AgainstOff(Document, frozen=True, kw_only=True):
    """A launch against everything off; `lost` and `gained` only where questions are paired."""

    paired: bool = False
    lost: int | None = None
    gained: int | None = None
    difference: float
    p_value: float | None = None


class Scored(Document, frozen=True, kw_only=True):
    """What one launch showed; accesses are None where nobody looked."""

    verdict: str | None = None
    explanation: str | None = None
    ended: str = "measured"
    detail: str = ""
    correct: int = 0
    asked: int = 0
    accuracy: float | None = None
    interval: Interval | None = None
    accept_length: float | None = None
    out_of_range_reads: int | None = None
    out_of_range_writes: int | None = None
    last_slot: int | None = None
    requests_on_last_slot: int | None = None
    seconds: float = 0.0
    log: str | None = None
    comparison: AgainstOff | None = None


class LaunchMade(Scored, frozen=True, kw_only=True):
    number: int
    role: str = "subject"
    on: tuple[str, ...] = ()
    reason: str = ""


class AtConcurrency(Scored, frozen=True, kw_only=True):
    concurrency: int


class ConfigBisectDocument(Document, frozen=True, kw_only=True):
    schema: str
    verdict: str
    exit_code: int
    switches: tuple[SwitchStates, ...]
    reason: str = ""
    probe: str = ""
    scenario: str | None = None
    symptom: str | None = None
    subject: str = ""
    reference: str | None = None
    questions: int | None = None
    partial: bool = False
    started: str = ""
    seconds: float = 0.0
    culprit: tuple[str, ...] | None = None
    certain: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()
    confirmation: Vouching | None = None
    launches: tuple[LaunchMade, ...] = ()
    concurrency: tuple[AtConcurrency, ...] = ()
    plan: dict[str, Any] = msgspec.field(default_factory=dict)
    command: tuple[str, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    report: str = ""

    @property
    def called(self) -> str:
        """What was launched: the scenario's name and the subject's, or the command."""
        return f"{self.scenario}, {self.subject}" if self.scenario else self.subject
