"""A score with its interval, against a band: one small picture for a table cell."""

from __future__ import annotations

from poolbisect.reporting.charts.shapes import Chart, Dot, Line, Rect, Scale, Shape
from poolbisect.reporting.numbers import interval as interval_words

WIDTH, HEIGHT = 220, 22


def common_range(values: list[float]) -> tuple[float, float]:
    """A range that holds all `values`, which are shares, with some room around them."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = max(0.02, 0.06 * (high - low))
    return max(0.0, low - room), min(1.0, high + room)


def interval_chart(
    score: float,
    interval: tuple[float, float] | None,
    limits: tuple[float, float],
    *,
    css: str,
    band: tuple[float, float] | None = None,
    gate: float | None = None,
) -> Chart:
    """`band`: where the baseline says the score should be; `gate`: a pass mark."""
    across = Scale(*limits, 4, WIDTH - 4)
    middle = HEIGHT / 2
    shapes: list[Shape] = [Line(4, middle, WIDTH - 4, middle, "track")]
    if band is not None:
        left, right = across(band[0]), across(band[1])
        if right - left < 3:
            left, right = (left + right) / 2 - 1.5, (left + right) / 2 + 1.5
        shapes.append(
            Rect(left, 2, right - left, HEIGHT - 4, "band", f"baseline {interval_words(band)}")
        )
    if gate is not None:
        shapes.append(Line(across(gate), 1, across(gate), HEIGHT - 1, "gate", f"gate {gate:g}"))
    if interval is not None:
        low, high = across(interval[0]), across(interval[1])
        shapes += [
            Line(low, middle, high, middle, f"whisker {css}"),
            Line(low, middle - 4, low, middle + 4, f"whisker {css}"),
            Line(high, middle - 4, high, middle + 4, f"whisker {css}"),
        ]
    shapes.append(Dot(across(score), middle, 4, f"point {css}", f"{score:.3f}"))
    words = f"{score:.3f}" if interval is None else f"{score:.3f}, {interval[0]:.3f} to "
    words += "" if interval is None else f"{interval[1]:.3f}"
    return Chart("score with its interval", words, WIDTH, HEIGHT, tuple(shapes), small=True)
