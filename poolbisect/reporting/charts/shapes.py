"""Charts as lists of shapes, in user units of an SVG's view box.

`css` names what a shape is ("band", "bad", "axis"); colours belong to the style sheet, so that a
chart follows light and dark. `hint` is shown when pointing at a shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Rect:
    kind: ClassVar[str] = "rect"
    x: float
    y: float
    width: float
    height: float
    css: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    kind: ClassVar[str] = "line"
    x1: float
    y1: float
    x2: float
    y2: float
    css: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    kind: ClassVar[str] = "dot"
    x: float
    y: float
    radius: float
    css: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Straight lines through `points`; closed and filled where the style sheet says so."""

    kind: ClassVar[str] = "curve"
    points: tuple[tuple[float, float], ...]
    css: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """Text on a base line; `anchor` as in SVG: start, middle or end."""

    kind: ClassVar[str] = "label"
    x: float
    y: float
    text: str
    anchor: str = "start"
    css: str = ""
    hint: str = ""


Shape = Rect | Line | Dot | Curve | Label


@dataclass(frozen=True, slots=True)
class Chart:
    """`title` and `description` are read out in place of the picture."""

    title: str
    description: str
    width: float
    height: float
    shapes: tuple[Shape, ...] = field(default=())
    small: bool = False
    """Drawn in a table cell, without words."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` onto coordinates from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)
