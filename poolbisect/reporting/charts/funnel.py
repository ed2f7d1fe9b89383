"""A bisect as a funnel: at each step the commits that were still possible, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolbisect.reporting.charts.shapes import Chart, Curve, Dot, Label, Line, Rect, Scale, Shape

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 118, 96, 26, 30
_MOST_HEIGHT = 720
SCORE = "a score"
"""Verdict of a step that measured a score, which only all steps together make a verdict of."""


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """A probe at `position`; `low` to `high` is the open range after it, where known."""

    number: int
    position: int
    name: str
    verdict: str
    low: int | None
    high: int | None
    remaining: int | None


def funnel_chart(
    steps: Sequence[FunnelStep], commits: int, noun: str, culprit: int | None = None
) -> Chart:
    """`steps` in order, at least one; `commits` positions in all; `noun` is commit or release."""
    row = max(8.0, min(24.0, _MOST_HEIGHT / len(steps)))
    bottom = TOP + row * len(steps)
    across = Scale(0, max(1, commits - 1), LEFT, WIDTH - RIGHT)
    every = max(1, round(14 / row))
    shapes: list[Shape] = [
        Label(LEFT - 10, TOP - 10, "step", "end", "tick"),
        Label(WIDTH - RIGHT + 10, TOP - 10, f"{noun}s left", "start", "tick"),
    ]
    if culprit is not None:
        x = across(culprit)
        shapes.append(Line(x, TOP - 4, x, bottom + 4, "answer-line", "the answer"))
    for at, step in enumerate(steps):
        middle = TOP + row * (at + 0.5)
        shapes.append(Line(LEFT, middle, WIDTH - RIGHT, middle, "track"))
        if step.low is not None and step.high is not None:
            left, right = across(step.low), across(step.high)
            if right - left < 3:
                left, right = (left + right) / 2 - 1.5, (left + right) / 2 + 1.5
            height = max(4.0, row * 0.55)
            shapes.append(
                Rect(left, middle - height / 2, right - left, height, "open", _left(step, noun))
            )
        hint = f"step {step.number}: {step.name}, {step.verdict}"
        shapes.append(_mark(across(step.position), middle, min(5.0, row * 0.4), step.verdict, hint))
        if at % every == 0 or at == len(steps) - 1:
            shapes.append(
                Label(LEFT - 10, middle + 4, f"{step.number}  {step.name}", "end", "tick")
            )
            if step.remaining is not None:
                shapes.append(
                    Label(WIDTH - RIGHT + 10, middle + 4, f"{step.remaining:,}", "start", "tick")
                )
    shapes += [
        Label(LEFT, bottom + 18, "oldest", "start", "tick"),
        Label(WIDTH - RIGHT, bottom + 18, "newest", "end", "tick"),
    ]
    last = steps[-1]
    signs = signs_of(steps)
    ending = "" if last.remaining is None else f"; {last.remaining} left after the last"
    return Chart(
        f"{len(steps)} steps over {commits} {noun}s",
        f"A line a step, from the first at the top: the bar is the {noun}s that were still "
        f"possible, the sign is where it measured ({signs}){ending}.",
        WIDTH,
        bottom + BOTTOM,
        tuple(shapes),
    )


def signs_of(steps: Sequence[FunnelStep]) -> str:
    """What the signs in the chart mean, of those that are there."""
    seen = {step.verdict for step in steps}
    meanings = {"good": "dot: good", "bad": "diamond: bad", SCORE: "blue dot: a score"}
    words = [meaning for verdict, meaning in meanings.items() if verdict in seen]
    if seen - set(meanings):
        words.append("ring: neither good nor bad")
    return "; ".join(words)


def _left(step: FunnelStep, noun: str) -> str:
    return f"after step {step.number}: {step.remaining} {noun}s left"


def _mark(x: float, y: float, size: float, verdict: str, hint: str) -> Shape:
    if verdict == "bad":
        size += 1
        corners = ((x, y - size), (x + size, y), (x, y + size), (x - size, y), (x, y - size))
        return Curve(corners, "diamond bad", hint)
    css = {"good": "point good", SCORE: "point"}.get(verdict, "point warning")
    return Dot(x, y, size, css, hint)
