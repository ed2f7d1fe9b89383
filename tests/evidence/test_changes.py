from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.evidence.changes import (
    best_splits,
    change_range,
    fit_drift,
    fit_groups,
    fit_two_levels,
    split,
)
from poolbisect.evidence.noise import Noise, chance_of_ties

KNOWN = Noise(0.011, np.inf)


@pytest.mark.parametrize("noise", [KNOWN, Noise(), Noise(0.011, 20)], ids=["known", "none", "some"])
def test_each_test_keeps_its_level_on_steady_noise(noise):
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 3
    fired = dict.fromkeys(("split", "drift", "groups", "levels"), 0)
    for _ in range(1000):
        # A spread that rests on few runs is itself drawn anew.
        sd = 0.011 * np.sqrt(rng.chisquare(20) / 20) if noise.freedom == 20 else noise.sd
        drawn = Noise(float(sd), noise.freedom)
        scores = rng.normal(0.776, 0.011, 24)
        fired["split"] += bool(split(scores, drawn, 0.05))
        fired["drift"] += fit_drift(scores, drawn)[0].p_value < 0.05
        fired["groups"] += fit_groups(scores, labels, drawn).p_value < 0.05
        fired["levels"] += fit_two_levels(scores, drawn)[0].p_value < 0.05
    # The exact tests meet 5 %, the adjusted ones stay below; 0.07 is three standard errors off.
    assert max(fired.values()) <= 70
    assert min(fired["drift"], fired["groups"]) >= 30


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 60), st.data())
def test_a_large_step_is_found_at_its_place(nights, data):
    place = data.draw(st.integers(2, nights - 2))
    rng = np.random.default_rng(nights)
    scores = rng.normal(np.where(np.arange(nights) < place, 0.9, 0.5), 0.005)
    # Chance may add a small one at the stated rate; that rate is tested with test_series.
    assert place in split(scores, Noise(0.005, np.inf), 0.001)
    assert change_range(scores, place, 0, nights, Noise(0.005, np.inf)) == (place, place)


def test_a_passing_change_is_found_though_both_ends_agree():
    scores = np.full(60, 0.8) + np.tile([0.004, -0.004], 30)
    scores[30:34] -= 0.05
    assert split(scores, Noise(0.004, np.inf), 0.001) == (30, 34)


def test_two_steps_are_both_found():
    rng = np.random.default_rng(3)
    levels = np.repeat([0.8, 0.77, 0.74], 20)
    assert split(rng.normal(levels, 0.004), Noise(), 0.001) == (20, 40)


def test_a_small_step_has_a_wide_credible_range_that_holds_the_truth():
    rng = np.random.default_rng(0)
    held, widths = 0, []
    for _ in range(400):
        scores = rng.normal(np.where(np.arange(40) < 20, 0.776, 0.765), 0.011)
        cut = best_splits(scores, KNOWN)[0].cuts[0]
        first, last = change_range(scores, cut, 0, 40, KNOWN)
        held += first <= 20 <= last
        widths.append(last - first)
    assert held / 400 >= 0.92
    assert np.mean(widths) > 2


def test_one_or_two_nights_without_a_recorded_spread_show_nothing():
    assert split(np.array([0.8]), Noise(), 0.05) == ()
    assert split(np.array([0.8, 0.2]), Noise(), 0.05) == ()


def test_ties_on_a_coarse_grid_are_no_certainty():
    scores = np.array([0.78, 0.775, 0.775, 0.775])
    assert split(scores, Noise(grid=1 / 200), 0.01) == ()
    assert split(scores, Noise(), 0.01) == (1,)


def test_the_chance_of_ties_bounds_what_simulated_nights_show():
    rng = np.random.default_rng(0)
    nights = np.round(rng.normal(0.776, 0.011, (40_000, 3)) * 200)
    tied = np.mean(np.ptp(nights, axis=1) == 0)
    bound = chance_of_ties(3, Noise(0.011, np.inf, 1 / 200))
    assert tied <= bound <= 3 * tied
    assert chance_of_ties(3, Noise()) == 1.0
