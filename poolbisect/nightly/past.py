"""What a series of earlier nights says: the last good one, an open finding, mean and best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from poolbisect.evidence.baseline import BaselineScore
from poolbisect.evidence.dispersion import sample_sd
from poolbisect.evidence.environment import SeriesPoint
from poolbisect.evidence.findings import SeriesFinding
from poolbisect.evidence.series import classify_series

GOOD, BAD = "good", "bad"
_TREND_NIGHTS = 3


@dataclass(frozen=True, slots=True)
class PastNight:
    """One night of a series. `state` is good, bad, unknown or untestable; `started` an ISO time.

    `loss` is the drop it was bad by, a share of one; `run` the id of its run; `runner`,
    `dependencies` and `revision` are what it ran with, as far as that was recorded.
    """

    started: str
    subject: str
    state: str
    accuracy: float | None
    correct: int | None = None
    answered: int | None = None
    loss: float | None = None
    run: str | None = None
    revision: str | None = None
    runner: str | None = None
    dependencies: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """Bad nights that no good one has followed: since when, how many, the largest loss.

    `undecided` nights lie between the last good night and the first bad one: it may have begun
    on one of them.
    """

    since: PastNight
    nights: int
    loss: float | None
    undecided: int


def night_name(started: str) -> str:
    """A night as people name it: 2026-05-01 03:00 UTC."""
    return f"{datetime.fromisoformat(started).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def last_good(past: Sequence[PastNight]) -> PastNight | None:
    return next((night for night in reversed(past) if night.state == GOOD), None)


def open_finding(past: Sequence[PastNight]) -> OpenFinding | None:
    """The finding that the nights so far have left open, None if there is none.

    Undecided nights neither open nor close one.
    """
    start = max((n + 1 for n, night in enumerate(past) if night.state == GOOD), default=0)
    bad = [n for n in range(start, len(past)) if past[n].state == BAD]
    if not bad:
        return None
    losses = [night.loss for n in bad if (night := past[n]).loss is not None]
    undecided = bad[0] - start if start else 0
    largest = max((loss for loss in losses if loss is not None), default=None)
    return OpenFinding(past[bad[0]], len(bad), largest, undecided)


@dataclass(frozen=True, slots=True)
class Standing:
    """The nights before: how many, mean and standard deviation of the last few, the best ever."""

    nights: int
    mean: float | None = None
    sd: float | None = None
    best: float | None = None
    best_night: str | None = None


def standing(past: Sequence[PastNight], window: int) -> Standing:
    """Where a series stands, tonight not included; the sd needs two nights."""
    scored = [(night.accuracy, night.started) for night in past if night.accuracy is not None]
    if not scored:
        return Standing(0)
    recent = [score for score, _ in scored[-window:]]
    best, best_night = max(scored, key=lambda one: one[0])
    mean = sum(recent) / len(recent)
    sd = sample_sd(recent) if len(recent) > 1 else None
    return Standing(len(scored), mean, sd, best, best_night)


def trend(nights: Sequence[PastNight], baseline: BaselineScore | None) -> SeriesFinding | None:
    """What the series does, tonight included as the last night; None for fewer than three."""
    points = [
        SeriesPoint(night.accuracy, night.runner, night.dependencies, night.revision)
        for night in nights
        if night.accuracy is not None
    ]
    if len(points) < _TREND_NIGHTS:
        return None
    asked = {night.answered for night in nights if night.accuracy is not None}
    questions = asked.pop() if len(asked) == 1 else None
    return classify_series(points, baseline=baseline, questions=questions)
