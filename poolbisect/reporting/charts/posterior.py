"""How likely each commit is the one, given every answer."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.reporting.charts.shapes import Chart, Label, Line, Rect, Scale, Shape
from poolbisect.reporting.numbers import plural

WIDTH, HEIGHT = 760, 190
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 18, 46
_MOST_NAMES = 9


def posterior_chart(weights: Sequence[tuple[str, float]], noun: str) -> Chart:
    """`weights`: name and share of the posterior, oldest first, at least one."""
    across = Scale(0, len(weights), LEFT, WIDTH - RIGHT)
    up = Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    base = HEIGHT - BOTTOM
    shapes: list[Shape] = []
    for share in (0.0, 0.5, 1.0):
        shapes.append(Line(LEFT, up(share), WIDTH - RIGHT, up(share), "grid"))
        shapes.append(Label(LEFT - 6, up(share) + 4, f"{100 * share:.0f} %", "end", "tick"))
    likeliest = max(range(len(weights)), key=lambda at: weights[at][1])
    width = min(40.0, 0.7 * (across(1) - across(0)))
    named = set(range(len(weights))) if len(weights) <= _MOST_NAMES else {likeliest}
    for at, (name, weight) in enumerate(weights):
        middle = across(at + 0.5)
        height = max(1.5, base - up(weight))
        css = "bar likeliest" if at == likeliest else "bar"
        hint = f"{name}: {100 * weight:.2f} %"
        shapes.append(Rect(middle - width / 2, base - height, width, height, css, hint))
        if at in named:
            shapes.append(Label(middle, base + 16, name, "middle", "tick"))
    name, weight = weights[likeliest]
    shapes.append(Line(LEFT, base, WIDTH - RIGHT, base, "axis"))
    order = f"{noun}s with at least 0.05 %, oldest first"
    shapes.append(Label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, order, "middle", "tick"))
    return Chart(
        f"Probability of each {noun}",
        f"The likeliest is {name} with {100 * weight:.2f} %; "
        f"{plural(len(weights), noun)} {'holds' if len(weights) == 1 else 'hold'} at least 0.05 %.",
        WIDTH,
        HEIGHT,
        tuple(shapes),
    )
