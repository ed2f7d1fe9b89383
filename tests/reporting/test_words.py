"""Small things reports are made of: visible text, names in prose, numbers, charts."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.arena import Extent, ShortBuffer, arena_chart
from poolbisect.reporting.charts.funnel import FunnelStep, funnel_chart
from poolbisect.reporting.charts.intervals import common_range, interval_chart
from poolbisect.reporting.charts.shapes import Chart, Curve, Dot, Label, Line, Rect
from poolbisect.reporting.charts.slots import SlotSum, slots_chart
from poolbisect.reporting.charts.trend import TrendPoint, trend_chart
from poolbisect.reporting.model import Code, as_text, in_words
from poolbisect.reporting.rendering.visible import visible

Share = st.floats(0, 1)


@given(st.text(st.characters(codec=None)))
def test_visible_text_has_nothing_hidden_and_loses_nothing_seen(text: str) -> None:
    made = visible(text)
    assert not any(0x202A <= ord(one) <= 0x202E or 0x2066 <= ord(one) <= 0x2069 for one in made)
    assert not any(ord(one) < 0x20 and one not in "\t\n" for one in made)
    made.encode()
    assert visible(made) == made


def test_plain_text_stays_as_it_is() -> None:
    text = "Größe 日本語 שלום 😀 a\tb\n"
    assert visible(text) == text
    assert visible("a\x00b\x7f\u202e\ud800") == "a␀b␡[U+202E][U+D800]"


@given(st.text())
def test_names_in_prose_are_told_apart_without_losing_a_letter(text: str) -> None:
    assert as_text(in_words(text)) == text


def test_names_paths_and_commits_are_names() -> None:
    words = in_words("buf_a[3] of srt/x/y.py:12 since cb8fbd53fc, e.g. 0.765 and/or 12345678.")
    names = [word.text for word in words if isinstance(word, Code)]
    assert names == ["buf_a[3]", "srt/x/y.py:12", "cb8fbd53fc"]


@pytest.mark.parametrize("piece", ["a", "_", "a_", "a.", "a/", "0a", "a_."])
def test_long_hostile_prose_takes_linear_time(piece: str) -> None:
    """Ten times the text may not take a hundred times as long: checked by work, not by clock."""
    short, long = piece * 2_000, piece * 20_000
    spent = []
    for text in (short, long):
        started = time.process_time()
        for _ in range(5):
            in_words(text)
        spent.append(time.process_time() - started)
    assert spent[1] < 60 * spent[0] + 0.5


def test_numbers_are_never_rounded_to_certainty() -> None:
    assert numbers.percent(0.99999) == "99.9 %"
    assert numbers.percent(1.0) == "100 %"
    assert numbers.percent(0.00001) == "0.1 %"
    assert numbers.p_value(1e-20) == "< 0.0001"
    assert numbers.points(-0.35026) == "\u221235.0 pt"
    assert numbers.seconds(3725) == "1 h 2 min"
    assert numbers.moment("2026-11-29T18:28:36+00:00") == "2026-11-29 18:28 UTC"
    assert numbers.moment("yesterday") == "yesterday"


def inside(chart: Chart) -> bool:
    """Every shape lies within the picture, at finite places."""
    for shape in chart.shapes:
        match shape:
            case Rect():
                places = [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
                if shape.width < 0 or shape.height < 0:
                    return False
            case Line():
                places = [(shape.x1, shape.y1), (shape.x2, shape.y2)]
            case Curve():
                places = list(shape.points)
            case Dot() | Label():
                places = [(shape.x, shape.y)]
        for x, y in places:
            if not (math.isfinite(x) and math.isfinite(y)):
                return False
            if not (-8 <= x <= chart.width + 8 and -8 <= y <= chart.height + 8):
                return False
    return True


@given(Share, Share, Share, st.none() | st.tuples(Share, Share))
def test_interval_charts_stay_inside(
    score: float, low: float, high: float, band: tuple[float, float] | None
) -> None:
    ends = (min(low, high), max(low, high))
    band = band and (min(band), max(band))
    limits = common_range([score, *ends, *(band or ())])
    assert inside(interval_chart(score, ends, limits, css="good", band=band, gate=0.5))


@given(st.lists(st.tuples(Share, st.booleans()), min_size=1, max_size=400))
def test_trends_stay_inside(scores: list[tuple[float, bool]]) -> None:
    points = [
        TrendPoint(f"2026-01-{1 + at % 28:02d}T00:00:00", score, (score, score), css, "")
        for at, (score, bad) in enumerate(scores)
        for css in (["bad"] if bad else ["good"])
    ]
    chart = trend_chart(points, "x", (0.4, 0.4))
    assert inside(chart)
    assert sum("diamond" in shape.css for shape in chart.shapes) == sum(bad for _, bad in scores)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=600),
    st.integers(0, 600),
)
def test_slot_charts_stay_inside_and_have_a_bar_a_slot(
    asked: list[tuple[int, int]], short_from: int
) -> None:
    sums = [
        SlotSum(slot, count, min(lost, count), min(lost, count), slot >= short_from)
        for slot, (count, lost) in enumerate(asked)
    ]
    chart = slots_chart(sums, "a", "b")
    assert inside(chart)
    assert sum(shape.css.startswith("bar") for shape in chart.shapes) == len(sums)


@given(st.integers(2, 10_000), st.lists(st.integers(0, 10_000), min_size=1, max_size=90))
def test_funnels_stay_inside(commits: int, positions: list[int]) -> None:
    steps = [
        FunnelStep(number, at % commits, "abc", "good", 0, at % commits, at % commits + 1)
        for number, at in enumerate(positions, 1)
    ]
    assert inside(funnel_chart(steps, commits, "commit", culprit=commits - 1))


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([4, 8, 1024, 4096]))
def test_arena_maps_stay_inside_and_frame_what_was_reached(
    rows: int, beyond: int, row_bytes: int
) -> None:
    end = 512 + rows * row_bytes
    short = ShortBuffer(Extent("short", 512, end), rows, rows, rows + beyond - 1)
    around = [Extent("before", 0, 512), short.extent, Extent("behind", end, end + 10**6)]
    chart = arena_chart(short, around)
    assert inside(chart)
    (frame,) = (shape for shape in chart.shapes if shape.css == "frame")
    (edge,) = (shape for shape in chart.shapes if shape.css == "edge")
    assert frame.x == edge.x1  # type: ignore[union-attr]
    assert "behind" in chart.description
