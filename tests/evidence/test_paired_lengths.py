"""Accept lengths of the same questions in two runs (case A5)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.paired_lengths import compare_lengths

lengths = st.dictionaries(st.integers(0, 40), st.floats(1, 4, width=16), max_size=30)


def test_a5_the_one_request_whose_drafts_fail_is_counted_and_the_others_are_not() -> None:
    before = dict.fromkeys(range(8), 3.0)
    found = compare_lengths(before, {**before, 0: 0.55})
    assert (found.fell, found.rose, found.differing) == (1, 0, 1)
    assert (found.before, found.after) == (3.0, 0.55)


def test_one_fall_in_eight_rounds_is_significant() -> None:
    """One request in eight held the slot all along: of 80, ten have 0.55 and 70 are untouched."""
    before = {n: 3.0 + n / 1000 for n in range(80)}
    found = compare_lengths(before, {n: 0.55 if n % 8 == 0 else v for n, v in before.items()})
    assert (found.fell, found.rose) == (10, 0)
    assert found.p_value == pytest.approx(2 / 2**10)
    assert (found.before, found.after) == (pytest.approx(3.036), pytest.approx(0.55))


@pytest.mark.parametrize("falls", [1, 2, 5, 8])
def test_p_is_that_of_the_signed_rank_test_on_few_questions(falls: int) -> None:
    """All n differences of one sign: the exact two-sided p-value is 2 / 2^n."""
    before = dict.fromkeys(range(20), 3.0)
    after = {n: 3.0 - 0.1 * (n + 1) if n < falls else 3.0 for n in range(20)}
    assert compare_lengths(before, after).p_value == pytest.approx(min(1.0, 2 / 2**falls))


def test_equal_runs_and_runs_without_a_shared_question_differ_nowhere() -> None:
    same = {1: 2.0, 2: 3.0}
    for before, after in ((same, same), (same, {3: 1.0}), ({}, {}), (same, {})):
        found = compare_lengths(before, after)
        assert (found.differing, found.p_value) == (0, 1.0)
        assert math.isnan(found.before)
        assert math.isnan(found.after)


def test_questions_only_one_run_has_say_nothing() -> None:
    assert compare_lengths({1: 3.0, 2: 3.0}, {2: 2.0, 3: 1.0}) == compare_lengths(
        {2: 3.0}, {2: 2.0}
    )


@given(before=lengths, after=lengths)
def test_a_rise_is_a_fall_seen_the_other_way_round(
    before: dict[int, float], after: dict[int, float]
) -> None:
    there, back = compare_lengths(before, after), compare_lengths(after, before)
    assert (there.fell, there.rose) == (back.rose, back.fell)
    assert there.p_value == pytest.approx(back.p_value)
    assert 0 < there.p_value <= 1
    if there.differing:
        assert (there.before, there.after) == pytest.approx((back.after, back.before))
        shared = [q for q in before if q in after]
        assert there.differing == sum(before[q] != after[q] for q in shared)
