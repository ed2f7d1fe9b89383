from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.evidence.paired import PairedComparison
from poolbisect.evidence.unpaired import compare_unpaired
from poolbisect.evidence.verdict import Verdict, judge


def test_a_significant_drop_is_bad():
    judged = judge(
        PairedComparison(both_right=138, lost=17, gained=3, both_wrong=42),
        smallest_drop_of_interest=0.056,
    )
    assert judged.verdict is Verdict.BAD
    assert judged.difference == pytest.approx(-0.07)
    assert "7.0 points" in judged.reason


def test_an_undecided_comparison_is_unknown_and_never_good():
    # 155/200 against 144/200, p = 0.21: the drop may be there.
    judged = judge(compare_unpaired(155, 200, 144, 200), smallest_drop_of_interest=0.056)
    assert judged.verdict is Verdict.UNKNOWN
    assert judged.questions_needed == pytest.approx(1261, rel=0.02)
    assert judged.detectable == pytest.approx(0.147, abs=0.001)
    assert "questions would do" in judged.reason


def test_identical_runs_are_good_only_if_they_were_long_enough():
    long = PairedComparison(both_right=1024, lost=0, gained=0, both_wrong=295)
    short = PairedComparison(both_right=31, lost=0, gained=0, both_wrong=9)
    assert judge(long, smallest_drop_of_interest=0.02).verdict is Verdict.GOOD
    judged = judge(short, smallest_drop_of_interest=0.02)
    assert judged.verdict is Verdict.UNKNOWN
    assert judged.questions_needed is not None
    assert judged.questions_needed > 40


def test_six_of_1319_questions_wrong_is_below_what_accuracy_can_see():
    few = PairedComparison(both_right=1020, lost=5, gained=1, both_wrong=293)
    judged = judge(few, smallest_drop_of_interest=6 / 1319)
    assert judged.verdict is Verdict.UNKNOWN
    assert judged.detectable is not None
    assert judged.detectable > 6 / 1319


def test_a_significant_drop_below_the_minimum_effect_is_not_bad():
    small = PairedComparison(both_right=1010, lost=9, gained=0, both_wrong=300)
    assert judge(small, smallest_drop_of_interest=0.02).verdict is Verdict.BAD
    judged = judge(small, smallest_drop_of_interest=0.02, minimum_effect=0.01)
    assert judged.significant
    assert judged.verdict is Verdict.GOOD
    assert "less than the 1.0 points that count" in judged.reason


def test_a_significant_rise_is_good_whatever_the_number_of_questions():
    judged = judge(PairedComparison(20, 0, 9, 11), smallest_drop_of_interest=0.01)
    assert judged.verdict is Verdict.GOOD
    assert "rose" in judged.reason


def test_recorded_flips_set_the_sensitivity():
    quiet = PairedComparison(both_right=1000, lost=0, gained=0, both_wrong=319)
    kept = judge(quiet, smallest_drop_of_interest=0.02)
    flaky = judge(quiet, smallest_drop_of_interest=0.02, flips=0.2)
    assert (kept.verdict, flaky.verdict) == (Verdict.GOOD, Verdict.UNKNOWN)


def test_without_a_shared_question_nothing_is_known():
    judged = judge(PairedComparison(0, 0, 0, 0), smallest_drop_of_interest=0.05)
    assert judged.verdict is Verdict.UNKNOWN
    assert judged.questions_needed is None
    assert judge(compare_unpaired(0, 0, 1, 2), smallest_drop_of_interest=0.05).verdict is (
        Verdict.UNKNOWN
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 200), st.integers(0, 30), st.integers(0, 30), st.integers(0, 200))
def test_bad_needs_significance_and_good_needs_sensitivity(right, lost, gained, wrong):
    judged = judge(PairedComparison(right, lost, gained, wrong), smallest_drop_of_interest=0.05)
    if judged.verdict is Verdict.BAD:
        assert judged.p_value < 0.05
        assert judged.difference < 0
    if judged.verdict is Verdict.GOOD:
        sensitive = judged.detectable is not None and judged.detectable <= 0.05
        assert sensitive or (judged.significant and judged.difference > 0)
    assert (judged.questions_needed is None) or judged.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("interest", "minimum", "named"), [(0.0, 0.0, "drop of interest"), (0.1, -1.0, "minimum")]
)
def test_impossible_thresholds_are_refused(interest, minimum, named):
    with pytest.raises(ValueError, match=named):
        judge(
            PairedComparison(1, 0, 0, 1),
            smallest_drop_of_interest=interest,
            minimum_effect=minimum,
        )
