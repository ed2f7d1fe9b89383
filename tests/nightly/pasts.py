"""Nights made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from poolbisect.nightly.past import PastNight

FIRST = datetime(2026, 5, 1, 3, tzinfo=UTC)


def night(
    number: int, state: str = "good", accuracy: float | None = 0.78, **more: Any
) -> PastNight:
    started = (FIRST + timedelta(days=number)).isoformat(timespec="milliseconds")
    facts = {"subject": "corrected", "correct": 1028, "answered": 1319} | more
    return PastNight(started=started, state=state, accuracy=accuracy, **facts)


def nights(states: Sequence[str], **more: Any) -> tuple[PastNight, ...]:
    """A past of these states, oldest first: g good, b bad, u unknown, x untestable."""
    names = {"g": "good", "b": "bad", "u": "unknown", "x": "untestable"}
    return tuple(night(number, names[state], **more) for number, state in enumerate(states))
