"""Device memory around the end of a short buffer: rows as its users count them, and the owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolbisect.reporting.charts.shapes import Chart, Label, Line, Rect, Scale, Shape
from poolbisect.reporting.numbers import DASH

WIDTH, HEIGHT = 760, 178
LEFT, RIGHT = 8, 8
ROWS_AT, OWNERS_AT, LANE = 34, 104, 36
_CHARACTER = 6.6


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes `start` to `end` - 1 of the arena, and whose they are; `owned` is False in gaps."""

    name: str
    start: int
    end: int
    owned: bool = True


@dataclass(frozen=True, slots=True)
class ShortBuffer:
    """A buffer, and the indices beyond its rows that were reached."""

    extent: Extent
    rows: int
    first_index: int
    last_index: int

    @property
    def row_bytes(self) -> int:
        return (self.extent.end - self.extent.start) // self.rows

    @property
    def reached_end(self) -> int:
        return self.extent.start + (self.last_index + 1) * self.row_bytes


def arena_chart(short: ShortBuffer, around: Sequence[Extent]) -> Chart:
    """Above, the buffer's rows; below, who owns the same bytes. `around` is in order."""
    end, reached = short.extent.end, short.reached_end
    beyond = reached - end
    low = max(short.extent.start, end - max(2 * short.row_bytes, beyond // 2))
    high = reached + max(short.row_bytes // 2, beyond // 3, 512)
    across = Scale(low, high, LEFT, WIDTH - RIGHT)
    shapes: list[Shape] = [
        Label(LEFT, ROWS_AT - 12, f"rows of {short.extent.name}, as it is indexed", css="tick"),
        Label(LEFT, OWNERS_AT - 12, "who owns these bytes", css="tick"),
    ]
    shapes += _rows(short, across, low)
    shapes += _owners(short, around, across, low, high)
    shapes += [
        Line(across(end), ROWS_AT - 8, across(end), OWNERS_AT + LANE + 8, "edge"),
        Label(across(end), HEIGHT - 14, f"end of the buffer, byte {end:,}", "middle", "tick"),
    ]
    return Chart(
        f"Device memory around the end of {short.extent.name}",
        _description(short, around),
        WIDTH,
        HEIGHT,
        tuple(shapes),
    )


def _rows(short: ShortBuffer, across: Scale, low: int) -> list[Shape]:
    start, row = short.extent.start, short.row_bytes
    last, beyond = short.rows - 1, short.last_index
    shapes: list[Shape] = []
    if across(start + row) - across(start) < 14 and beyond - last > 1:
        spans = [(max(0, (low - start) // row), last), (last + 1, beyond)]
    else:
        spans = [(index, index) for index in range(max(0, (low - start) // row), beyond + 1)]
    for first, final in spans:
        left, right = across(start + first * row), across(start + (final + 1) * row)
        outside = first > last
        words = f"{first}" if first == final else f"{first}{DASH}{final}"
        if outside:
            words += ": no such row" if first == final else ": no such rows"
        shapes.append(
            Rect(left, ROWS_AT, right - left, LANE, "cell outside" if outside else "cell", words)
        )
        shapes += _fitting(left, right, ROWS_AT, words, words.split(":")[0])
    return shapes


def _owners(
    short: ShortBuffer, around: Sequence[Extent], across: Scale, low: int, high: int
) -> list[Shape]:
    end, reached = short.extent.end, short.reached_end
    shapes: list[Shape] = []
    for one in around:
        if one.end <= low or one.start >= high:
            continue
        left, right = across(max(low, one.start)), across(min(high, one.end))
        hit = one.start < reached and one.end > end
        css = "cell" if one.owned else "cell gap"
        if hit and one.owned:
            css = "cell hit"
        hint = f"{one.name}: bytes {one.start:,} to {one.end - 1:,}"
        shapes.append(Rect(left, OWNERS_AT, right - left, LANE, css, hint))
        shapes += _fitting(left, right, OWNERS_AT, one.name, one.name.rsplit(".", 1)[-1])
    left, right = across(end), across(reached)
    shapes.append(
        Rect(left, OWNERS_AT - 3, right - left, LANE + 6, "frame", "reached from outside")
    )
    return shapes


def _fitting(left: float, right: float, top: float, *choices: str) -> list[Shape]:
    """The first of `choices` that fits between the two sides, if one does."""
    for words in choices:
        if len(words) * _CHARACTER + 8 <= right - left:
            return [Label((left + right) / 2, top + LANE / 2 + 4, words, "middle", "inside")]
    return []


def _description(short: ShortBuffer, around: Sequence[Extent]) -> str:
    hit = [
        one.name
        for one in around
        if one.start < short.reached_end and one.end > short.extent.end and one.owned
    ]
    indices = f"index {short.first_index}"
    if short.last_index != short.first_index:
        indices = f"indices {short.first_index} to {short.last_index}"
    whose = ", ".join(hit) if hit else "nobody"
    return (
        f"{short.extent.name} ends after row {short.rows - 1}; {indices} reached the bytes behind "
        f"it, which belong to {whose}."
    )
