from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.unpaired import compare_unpaired


def test_a_drop_of_5_6_points_on_1319_questions():
    comparison = compare_unpaired(1024, 1319, 950, 1319)
    assert round(comparison.z, 2) == -3.32
    assert round(comparison.p_value, 4) == 0.0009
    assert comparison.interval.high < 0


def test_the_same_drop_on_200_questions_is_not_significant():
    comparison = compare_unpaired(155, 200, 144, 200)
    assert round(comparison.p_value, 2) == 0.21
    assert 0 in comparison.interval


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_order_flips_the_sign_only(n, m, data):
    x, y = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    forward, backward = compare_unpaired(x, n, y, m), compare_unpaired(y, m, x, n)
    assert forward.z == pytest.approx(-backward.z)
    assert forward.p_value == pytest.approx(backward.p_value)


@pytest.mark.parametrize("counts", [(5, 5, 7, 7), (0, 5, 0, 7), (0, 0, 3, 7)])
def test_all_right_all_wrong_or_nothing_asked_is_no_evidence(counts):
    comparison = compare_unpaired(*counts)
    assert (comparison.z, comparison.p_value, comparison.difference) == (0.0, 1.0, 0.0)


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="between 0 and asked"):
        compare_unpaired(3, 2, 0, 2)
