"""The fields of a `poolbisect.bisect/1` document that reports show."""

from __future__ import annotations

from typing import Any

import msgspec

from poolbisect.reporting.documents.run import Document, Interval


class Entry(Document, frozen=True, kw_only=True):
    """A commit or a release."""

    commit: str | None = None
    release: str | None = None
    short: str = ""
    title: str = ""
    date: str | None = None
    author_date: str | None = None
    remark: str | None = None

    @property
    def name(self) -> str:
        return self.commit or self.release or self.short

    @property
    def called(self) -> str:
        return self.short or self.name


class Check(Document, frozen=True, kw_only=True):
    verdict: str | None = None
    text: str = ""


class Confirmation(Document, frozen=True, kw_only=True):
    """Measured again before blame: the commit before, the culprit, and without the culprit."""

    parent: Check | None = None
    culprit: Check | None = None
    revert: Check | None = None


class Attribution(Document, frozen=True, kw_only=True):
    buffer: str = ""
    pool: str | None = None
    file: str | None = None
    line: int | None = None
    rows: int | None = None
    index: int | None = None
    last: int | None = None
    space: str | None = None
    since: Entry | None = None
    detail: str | None = None
    text: str = ""


class Step(Document, frozen=True, kw_only=True):
    number: int
    position: int
    entry: Entry
    reason: str = ""
    questions: int | None = None
    asked: int | None = None
    correct: int | None = None
    accuracy: float | None = None
    interval: Interval | None = None
    ending: str = "measured"
    verdict: str | None = None
    accept_length: float | None = None
    note: str | None = None
    low: int | None = None
    high: int | None = None
    remaining: int | None = None
    mass: float | None = None
    seconds: float = 0.0
    log: str | None = None


class Weight(Entry, frozen=True, kw_only=True):
    """The share of the posterior on one position, which is named as an entry is."""

    position: int
    weight: float
    entry: Entry | None = None

    @property
    def at(self) -> Entry:
        return self.entry or self


class Transition(Document, frozen=True, kw_only=True):
    commit: str | None = None
    release: str | None = None
    date: str | None = None
    title: str = ""
    kind: str
    buffer: str = ""
    aspect: str = ""
    pools: tuple[str, ...] = ()
    unknown_before: int = 0
    text: str = ""

    @property
    def name(self) -> str:
        return self.commit or self.release or ""


class BisectDocument(Document, frozen=True, kw_only=True):
    schema: str
    verdict: str
    exit_code: int
    good: Entry
    bad: Entry
    reason: str = ""
    find: str = "introduced"
    probe: str = ""
    scenario: str | None = None
    symptom: str | None = None
    history: str = "commit"
    repository: str | None = None
    commits: int = 0
    started: str = ""
    seconds: float = 0.0
    partial: bool = False
    confidence: float | None = None
    asked_confidence: float | None = None
    probes: int | None = None
    questions: int | None = None
    switches: int | None = None
    culprit: Entry | None = None
    merge: Entry | None = None
    suspects: tuple[Entry, ...] = ()
    others: tuple[tuple[Entry, Entry], ...] = ()
    confirmation: Confirmation | None = None
    attribution: Attribution | None = None
    steps: tuple[Step, ...] = ()
    posterior: tuple[Weight, ...] = ()
    transitions: tuple[Transition, ...] = ()
    untestable: int = 0
    command: tuple[str, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    report: str = ""
