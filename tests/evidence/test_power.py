from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.evidence.mcnemar_power import (
    detectable_drop_over_flips,
    mcnemar_power,
    questions_over_flips,
)
from poolbisect.evidence.paired import mcnemar_exact
from poolbisect.evidence.power import (
    detectable_drop_paired,
    detectable_drop_unpaired,
    questions_paired,
    questions_unpaired,
)


def test_questions_for_a_drop_from_0_776_to_0_72():
    assert questions_unpaired(0.776, 0.72) == 1261
    assert [questions_paired(0.056, share) for share in (0.06, 0.10, 0.20)] == [197, 331, 666]


@given(st.floats(0.02, 0.2), st.floats(0.21, 0.6), st.floats(0.01, 0.3))
def test_more_discordance_or_a_smaller_drop_needs_more_questions(drop, share, more):
    assert questions_paired(drop, share) <= questions_paired(drop, share + more)
    assert questions_paired(drop, share) <= questions_paired(drop / 2, share)
    assert questions_paired(drop, share) <= questions_paired(drop, share, power=0.99)
    assert questions_paired(drop, share) <= questions_paired(drop, share, alpha=0.01)


@given(st.floats(0.4, 0.95), st.floats(0.02, 0.15))
def test_unpaired_questions_fall_with_the_drop(before, drop):
    assert questions_unpaired(before, before - drop) <= questions_unpaired(
        before, before - drop / 2
    )


@given(st.floats(0.5, 0.9), st.floats(0.03, 0.3))
def test_the_detectable_drop_is_the_inverse_of_the_questions_needed(before, drop):
    n = questions_unpaired(before, before - drop)
    assert detectable_drop_unpaired(n, before) == pytest.approx(drop, rel=0.03)
    paired = questions_paired(drop, 0.4)
    assert detectable_drop_paired(paired, 0.4) == pytest.approx(drop, rel=0.03)


def test_too_few_questions_detect_nothing():
    assert detectable_drop_unpaired(3, 0.5) is None
    assert detectable_drop_paired(40, 0.1) is None
    # Five discordant pairs, all lost, have p = 0.0625: no result of five questions is significant.
    assert detectable_drop_over_flips(5, 0.1) is None


@pytest.mark.parametrize(("n", "drop", "share"), [(197, 0.056, 0.06), (331, 0.056, 0.1)])
def test_exact_power_agrees_with_simulated_runs(n, drop, share):
    rng = np.random.default_rng(0)
    trials = 1500
    lost, gained = (share + drop) / 2, (share - drop) / 2
    cells = rng.multinomial(n, [lost, gained, 1 - share], size=trials)
    hits = sum(mcnemar_exact(x, y) < 0.05 for x, y, _ in cells.tolist() if x > y)
    assert hits / trials == pytest.approx(mcnemar_power(n, drop, share), abs=0.03)


def test_exact_power_without_a_drop_stays_below_half_the_level():
    # Two-sided at 0.05, and only drops are counted.
    for n in (10, 100, 1319):
        assert mcnemar_power(n, 0.0, 0.2) <= 0.025


@settings(max_examples=25, deadline=None)
@given(st.floats(0.03, 0.2), st.floats(0, 0.3))
def test_exact_questions_suffice_and_do_not_waste(drop, flips):
    n = questions_over_flips(drop, flips)
    assert mcnemar_power(n, drop, flips + drop) >= 0.9
    assert mcnemar_power(n * 3 // 4, drop, flips + drop) < 0.9
    detectable = detectable_drop_over_flips(n, flips)
    assert detectable is not None
    assert detectable <= drop + 1e-5


def test_more_flips_hide_larger_drops():
    drops = [detectable_drop_over_flips(1319, flips) for flips in (0.0, 0.05, 0.1, 0.3)]
    assert None not in drops
    assert drops == sorted(drops)


def test_impossible_plans_are_refused():
    with pytest.raises(ValueError, match="equal accuracies"):
        questions_unpaired(0.7, 0.7)
    with pytest.raises(ValueError, match="discordant"):
        questions_paired(0.2, 0.1)
    with pytest.raises(ValueError, match="alpha and power"):
        questions_paired(0.1, 0.2, power=1.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        questions_unpaired(1.2, 0.7)
    with pytest.raises(ValueError, match="impossible plan"):
        mcnemar_power(10, 0.3, 0.2)
