"""The fields of a `poolbisect.timeline/1` document that reports show; docs/timeline.md has all."""

from __future__ import annotations

from typing import Any

import msgspec

from poolbisect.reporting.documents.bisect import Transition
from poolbisect.reporting.documents.run import Document


class Unjudged(Document, frozen=True, kw_only=True):
    commit: str | None = None
    release: str | None = None
    reason: str = ""


class TimelineDocument(Document, frozen=True, kw_only=True):
    schema: str
    history: str
    good: str
    bad: str
    commits: int
    probed: int = 0
    untestable: int = 0
    untestable_reasons: tuple[Unjudged, ...] = ()
    seconds: float = 0.0
    started: str = ""
    pools: tuple[dict[str, Any], ...] = ()
    transitions: tuple[Transition, ...] = ()
    command: tuple[str, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
