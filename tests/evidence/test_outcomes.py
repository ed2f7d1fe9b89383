from __future__ import annotations

import pytest

from poolbisect.evidence.outcomes import Tally


def test_questions_lost_to_a_dead_connection_are_no_wrong_answers():
    tally = Tally(right=124, wrong=36, lost=40)
    assert tally.is_infra()
    assert (tally.asked, tally.answered) == (200, 160)
    assert tally.accuracy == pytest.approx(0.775)
    assert tally.bounds.low == pytest.approx(0.62)
    assert tally.bounds.high == pytest.approx(0.82)


def test_a_run_that_lost_everything_has_no_score():
    tally = Tally(right=0, wrong=0, lost=200)
    assert tally.accuracy is None
    assert tally.is_infra()
    assert Tally(0, 0).accuracy is None


def test_one_lost_question_of_a_full_run_is_tolerated():
    assert not Tally(right=1000, wrong=318, lost=1).is_infra()
    assert Tally(right=1000, wrong=318, lost=1).is_infra(max_lost_share=0.0)


def test_one_lost_question_of_ten_is_infra():
    assert Tally(right=9, wrong=0, lost=1).is_infra()


def test_unreadable_answers_count_as_wrong():
    tally = Tally(right=150, wrong=40, invalid=10)
    assert tally.accuracy == 0.75
    assert not tally.is_infra(max_lost_share=0.0)


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="negative"):
        Tally(right=1, wrong=-1)
