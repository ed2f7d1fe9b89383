"""What became of the questions of each request slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolbisect.reporting.charts.shapes import Chart, Label, Line, Rect, Scale, Shape
from poolbisect.reporting.numbers import DASH

WIDTH, HEIGHT = 760, 210
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 30, 34


@dataclass(frozen=True, slots=True)
class SlotSum:
    """Questions that ran on one slot, over all ranks.

    `lost`: wrong here and right on the reference. `outside`: a short buffer has no row for the
    slot. `per_rank` counts the questions of each rank.
    """

    slot: int
    asked: int
    wrong: int
    lost: int
    outside: bool
    per_rank: tuple[int, ...] = ()


def slots_chart(sums: Sequence[SlotSum], subject: str, reference: str) -> Chart:
    """The share of each slot's questions that were lost, slots without a row told apart."""
    first, last = sums[0].slot, sums[-1].slot
    across = Scale(first, last + 1, LEFT, WIDTH - RIGHT)
    highest = max([one.lost / one.asked for one in sums if one.asked], default=0.0)
    top = min(1.0, max(0.1, -(-highest // 0.1) * 0.1))
    up = Scale(0.0, top, HEIGHT - BOTTOM, TOP)
    base = HEIGHT - BOTTOM
    shapes: list[Shape] = []
    for step in range(3):
        share = top * step / 2
        shapes.append(Line(LEFT, up(share), WIDTH - RIGHT, up(share), "grid"))
        shapes.append(Label(LEFT - 6, up(share) + 4, f"{100 * share:.0f} %", "end", "tick"))
    gap = 1.0 if last - first < 130 else 0.0
    outside = [one for one in sums if one.outside]
    if outside:
        shapes += _outside(outside, across, base)
    for one in sums:
        left, right = across(one.slot) + gap / 2, across(one.slot + 1) - gap / 2
        share = one.lost / one.asked if one.asked else 0.0
        where = ", which has no row in a short buffer" if one.outside else ""
        hint = f"slot {one.slot}{where}: {one.lost} lost of {one.asked}"
        height = base - up(share)
        css = "bar outside" if one.outside else "bar"
        if height < 1.5:
            height, css = 1.5, css + " nothing"
        shapes.append(Rect(left, base - height, max(0.8, right - left), height, css, hint))
    shapes += _slot_axis(first, last, across, base)
    return Chart(
        f"Questions lost by {subject}, by request slot",
        _description(sums, outside, reference),
        WIDTH,
        HEIGHT,
        tuple(shapes),
    )


def _outside(outside: Sequence[SlotSum], across: Scale, base: float) -> list[Shape]:
    left, right = across(outside[0].slot), across(outside[-1].slot + 1)
    slots = f"slot {outside[0].slot}"
    if len(outside) > 1:
        slots = f"slots {outside[0].slot}{DASH}{outside[-1].slot}"
    middle = (left + right) / 2
    anchor = "middle" if LEFT + 90 < middle < WIDTH - RIGHT - 90 else "end"
    at = right if anchor == "end" else middle
    return [
        Rect(left, TOP - 4, right - left, base - TOP + 4, "outside-zone"),
        Label(at, TOP - 12, f"{slots}: no row ▾", anchor, "strong"),
    ]


def _slot_axis(first: int, last: int, across: Scale, base: float) -> list[Shape]:
    shapes: list[Shape] = [Line(LEFT, base, WIDTH - RIGHT, base, "axis")]
    step = next(size for size in (8, 16, 32, 64, 128, 256, 1 << 30) if (last - first) / size <= 12)
    ticks = [slot for slot in range(first, last) if slot % step == 0 and last - slot > step / 3]
    for slot in dict.fromkeys([first, *(t for t in ticks if t - first > step / 3), last]):
        x = (across(slot) + across(slot + 1)) / 2
        shapes.append(Label(x, base + 15, str(slot), "middle", "tick"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    shapes.append(Label(middle, HEIGHT - 4, "request slot", "middle", "tick"))
    return shapes


def _description(sums: Sequence[SlotSum], outside: Sequence[SlotSum], reference: str) -> str:
    inside = [one for one in sums if not one.outside]
    words = [
        f"Bars: of the questions that ran on each slot, the share that {reference} answered "
        "rightly and this subject did not."
    ]
    for name, group in (("slots with a row", inside), ("slots without a row", outside)):
        if group:
            lost, asked = sum(one.lost for one in group), sum(one.asked for one in group)
            words.append(f"On {name}, {lost} of {asked} were lost.")
    return " ".join(words)
