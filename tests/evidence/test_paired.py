from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.paired import PairedComparison, compare_paired, mcnemar_exact
from poolbisect.evidence.unpaired import compare_unpaired

cells = st.integers(0, 60)


@pytest.mark.parametrize(
    ("lost", "gained", "p"), [(17, 3, 0.0026), (14, 3, 0.0127), (11, 0, 0.00098)]
)
def test_mcnemar_gives_the_recorded_p_values(lost, gained, p):
    digits = len(str(p)) - 2
    assert round(mcnemar_exact(lost, gained), digits if p > 0.001 else 5) == p


@given(cells, cells)
def test_mcnemar_does_not_care_which_run_came_first(lost, gained):
    assert mcnemar_exact(lost, gained) == pytest.approx(mcnemar_exact(gained, lost))
    assert 0 < mcnemar_exact(lost, gained) <= 1


def test_mcnemar_without_a_discordant_pair_is_one():
    assert mcnemar_exact(0, 0) == 1.0


def test_mcnemar_refuses_negative_counts():
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 2)


def test_pairing_finds_what_the_unpaired_test_misses():
    # 155 -> 141 of 200 right: 17 lost, 3 gained.
    before = {q: q < 155 for q in range(200)}
    after = {q: (17 <= q < 155) or 155 <= q < 158 for q in range(200)}
    paired = compare_paired(before, after)
    assert (paired.lost, paired.gained, paired.n) == (17, 3, 200)
    assert round(paired.p_value, 4) == 0.0026
    assert paired.difference == pytest.approx(-0.07)
    assert paired.interval.high < 0
    assert paired.lost_ids == tuple(range(17))
    assert paired.gained_ids == (155, 156, 157)
    assert round(compare_unpaired(155, 200, 141, 200).p_value, 2) == 0.11


@given(
    st.dictionaries(st.integers(0, 40), st.booleans()),
    st.dictionaries(st.integers(0, 40), st.booleans()),
)
def test_counts_add_up_and_swap_with_the_order(before, after):
    forward, backward = compare_paired(before, after), compare_paired(after, before)
    assert forward.n == len(before.keys() & after.keys())
    assert forward.unmatched == len(before.keys() ^ after.keys())
    assert (forward.lost, forward.gained) == (backward.gained, backward.lost)
    assert forward.difference == pytest.approx(-backward.difference)
    assert forward.difference in forward.interval


def test_the_same_run_twice_shows_no_change():
    run = {"a": True, "b": False, "c": True}
    same = compare_paired(run, run)
    assert (same.lost, same.gained, same.p_value, same.difference) == (0, 0, 1.0, 0.0)
    assert same.before == same.after == pytest.approx(2 / 3)


def test_pairing_narrows_the_interval_where_answers_agree():
    paired = PairedComparison(both_right=138, lost=17, gained=3, both_wrong=42)
    assert paired.interval.width < compare_unpaired(155, 200, 141, 200).interval.width
    assert paired.interval_at(0.99).width > paired.interval.width


def test_negative_cells_are_refused():
    with pytest.raises(ValueError, match="negative"):
        PairedComparison(both_right=1, lost=-1, gained=0, both_wrong=0)
