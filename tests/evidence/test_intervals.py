from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.intervals import Interval, difference_interval, wilson


def counts(largest: int = 2000) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(1, largest).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("correct", "asked", "low", "high"),
    [
        (1024, 1319, 0.753, 0.798),
        (950, 1319, 0.695, 0.744),
        (155, 200, 0.712, 0.827),
        (144, 200, 0.654, 0.778),
    ],
)
def test_wilson_gives_the_recorded_intervals(correct, asked, low, high):
    interval = wilson(correct, asked)
    assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)


@given(counts())
def test_wilson_contains_the_point_estimate_and_stays_within_zero_and_one(pair):
    correct, asked = pair
    interval = wilson(correct, asked)
    assert correct / asked in interval
    assert interval.low >= 0
    assert interval.high <= 1


@given(counts())
def test_wilson_mirrors_when_right_and_wrong_swap(pair):
    correct, asked = pair
    interval, mirrored = wilson(correct, asked), wilson(asked - correct, asked)
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)
    assert interval.high == pytest.approx(1 - mirrored.low, abs=1e-12)


@given(counts(500))
def test_wilson_narrows_with_more_questions_at_the_same_accuracy(pair):
    correct, asked = pair
    assert wilson(4 * correct, 4 * asked).width < wilson(correct, asked).width


@given(counts())
def test_wilson_widens_with_confidence(pair):
    assert wilson(*pair, confidence=0.99).width > wilson(*pair, confidence=0.9).width


def test_without_a_question_nothing_is_known():
    assert wilson(0, 0) == Interval(0.0, 1.0)


def test_newcombe_published_examples():
    # Newcombe 1998: 56/70 - 48/80 independent; 50 pairs with cells 36, 12, 2, 0.
    independent = difference_interval((48, 80), (56, 70))
    assert (round(independent.low, 4), round(independent.high, 4)) == (0.0524, 0.3339)
    paired = difference_interval((38, 50), (48, 50), correlation=-24 / (38 * 12 * 48 * 2) ** 0.5)
    assert (round(paired.low, 4), round(paired.high, 4)) == (0.0569, 0.3404)


@given(counts(), counts())
def test_difference_interval_contains_the_difference_and_flips_sign_with_the_order(a, b):
    forward, backward = difference_interval(a, b), difference_interval(b, a)
    assert forward.low - 1e-12 <= b[0] / b[1] - a[0] / a[1] <= forward.high + 1e-12
    assert forward.low == pytest.approx(-backward.high, abs=1e-12)


@pytest.mark.parametrize(("correct", "asked"), [(-1, 10), (11, 10)])
def test_impossible_counts_are_refused(correct, asked):
    with pytest.raises(ValueError, match="between 0 and asked"):
        wilson(correct, asked)


def test_interval_ends_must_be_in_order():
    with pytest.raises(ValueError, match="out of order"):
        Interval(0.6, 0.4)
