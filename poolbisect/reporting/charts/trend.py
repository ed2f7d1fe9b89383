"""Scores of one subject over runs or nights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolbisect.reporting.charts.intervals import common_range
from poolbisect.reporting.charts.shapes import Chart, Curve, Dot, Label, Line, Rect, Scale, Shape

WIDTH, HEIGHT = 760, 160
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 16, 30


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One run: `started` ISO in UTC; `css` is good, bad or warning."""

    started: str
    score: float
    interval: tuple[float, float] | None
    css: str
    hint: str


def trend_chart(
    points: Sequence[TrendPoint],
    name: str,
    band: tuple[float, float] | None = None,
    band_words: str = "",
) -> Chart:
    """`points` oldest first, at least one, equally spaced."""
    bounds = [end for one in points if one.interval for end in one.interval]
    values = bounds + [one.score for one in points] + list(band or ())
    low, high = common_range(values)
    across = Scale(0, max(1, len(points) - 1), LEFT + 8, WIDTH - RIGHT - 8)
    up = Scale(low, high, HEIGHT - BOTTOM, TOP)
    shapes: list[Shape] = []
    for value in _ticks(low, high):
        shapes.append(Line(LEFT, up(value), WIDTH - RIGHT, up(value), "grid"))
        shapes.append(Label(LEFT - 6, up(value) + 4, f"{value:g}", "end", "tick"))
    if band is not None:
        height = max(2.0, up(band[0]) - up(band[1]))
        middle = (up(band[0]) + up(band[1])) / 2
        shapes.append(
            Rect(LEFT, middle - height / 2, WIDTH - LEFT - RIGHT, height, "band", band_words)
        )
    alone = len(points) == 1
    places = [(WIDTH / 2 if alone else across(at), one) for at, one in enumerate(points)]
    with_interval = [(x, one) for x, one in places if one.interval is not None]
    if len(points) <= 60:
        for x, one in with_interval:
            assert one.interval is not None
            shapes.append(
                Line(x, up(one.interval[0]), x, up(one.interval[1]), f"whisker {one.css}")
            )
    shapes.append(Curve(tuple((x, up(one.score)) for x, one in places), "trace"))
    radius = 4.0 if len(points) <= 60 else 2.5
    for x, one in places:
        if one.css == "bad":
            shapes.append(_cross(x, up(one.score), radius, one.hint))
        else:
            shapes.append(Dot(x, up(one.score), radius, f"point {one.css}", one.hint))
    shapes += _dates(places)
    first, last = points[0], points[-1]
    description = (
        f"{len(points)} runs from {first.started[:10]} to {last.started[:10]}, "
        f"{min(one.score for one in points):.3f} to {max(one.score for one in points):.3f}, the "
        f"last {last.score:.3f}. A diamond is a bad run. {band_words}"
    )
    return Chart(name, description.strip(), WIDTH, HEIGHT, tuple(shapes))


def _cross(x: float, y: float, radius: float, hint: str) -> Curve:
    size = radius + 1.5
    corners = ((x, y - size), (x + size, y), (x, y + size), (x - size, y), (x, y - size))
    return Curve(corners, "diamond bad", hint)


def _ticks(low: float, high: float) -> list[float]:
    step = next(size for size in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (high - low) / size <= 5)
    first = -(-low // step)
    return [round((first + at) * step, 4) for at in range(6) if (first + at) * step <= high + 1e-9]


def _dates(places: Sequence[tuple[float, TrendPoint]]) -> list[Shape]:
    """Days under the axis; the time of day where all runs are of one day."""
    base = HEIGHT - BOTTOM
    one_day = len({one.started[:10] for _, one in places}) == 1
    shapes: list[Shape] = [Line(LEFT, base, WIDTH - RIGHT, base, "axis")]
    every = max(1, -(-len(places) // 6))
    for at, (x, one) in enumerate(places):
        last = at == len(places) - 1
        if (at % every and not last) or (not last and at and len(places) - 1 - at < every / 2):
            continue
        anchor = "middle"
        if len(places) > 1:
            anchor = "start" if at == 0 else "end" if last else "middle"
        shift = {"start": -8, "middle": 0, "end": 8}[anchor]
        words = one.started[11:16] if one_day else one.started[:10]
        shapes.append(Label(x + shift, base + 16, words, anchor, "tick"))
    return shapes
