"""What earlier nights say: the last good one, an open finding, mean, best and trend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.findings import SeriesKind
from poolbisect.nightly.past import last_good, open_finding, standing, trend

from .pasts import night, nights

STATES = st.text(alphabet="gbux", max_size=12)


@given(STATES)
def test_a_finding_is_open_exactly_when_a_bad_night_has_no_good_one_after_it(states: str) -> None:
    found = open_finding(nights(states))
    assert (found is not None) == ("b" in states[states.rfind("g") + 1 :])


@given(STATES)
def test_it_began_on_the_first_bad_night_since_the_last_good_one(states: str) -> None:
    past = nights(states)
    found = open_finding(past)
    if found is None:
        return
    start = past.index(found.since)
    assert found.since.state == "bad"
    assert "g" not in states[start:]
    assert found.nights == states[start:].count("b")
    since_good = states[states.rfind("g") + 1 : start]
    assert "b" not in since_good
    # Only a known good night makes undecided ones a question.
    assert found.undecided == (len(since_good) if "g" in states else 0)


@given(STATES)
def test_undecided_nights_change_nothing(states: str) -> None:
    decided = [state for state in states if state in "gb"]
    found, without = open_finding(nights(states)), open_finding(nights(decided))
    assert (found is None) == (without is None)
    if found is not None and without is not None:
        assert found.nights == without.nights
    good = last_good(nights(states))
    assert (good is None) == ("g" not in states)


def test_the_largest_loss_of_an_open_finding_counts() -> None:
    past = (night(0), night(1, "bad", loss=0.05), night(2, "bad", loss=0.3), night(3, "unknown"))
    found = open_finding(past)
    assert found is not None
    assert found.loss == 0.3
    assert open_finding((night(0), night(1, "bad", None))).loss is None  # type: ignore[union-attr]


def test_mean_and_sd_are_of_the_last_seven_nights_and_best_of_all() -> None:
    scores = [0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    past = tuple(night(number, accuracy=score) for number, score in enumerate(scores))
    found = standing((*past, night(9, "untestable", None)), window=7)
    assert found.nights == 8
    assert found.mean == pytest.approx(0.4)
    assert found.sd == pytest.approx(0.2160, abs=1e-4)
    assert (found.best, found.best_night) == (0.9, past[0].started)


def test_a_short_past_has_no_spread_and_no_past_has_nothing() -> None:
    assert standing(nights("g"), 7).sd is None
    assert standing(nights("g"), 7).mean == 0.78
    assert standing((), 7).nights == 0
    assert standing(nights("gg"), 7).sd == 0


def test_b10_a_slow_drift_over_the_nights_is_named() -> None:
    scores = (0.896, 0.894, 0.893, 0.890, 0.889, 0.886, 0.885, 0.882, 0.881, 0.878, 0.877, 0.874)
    past = [night(n, accuracy=score) for n, score in enumerate((*scores, 0.873, 0.870))]
    found = trend(past, None)
    assert found is not None
    assert found.kind is SeriesKind.DRIFT
    assert found.slope == pytest.approx(-0.002, abs=2e-4)


def test_b11_a_score_that_follows_the_runner_is_no_step() -> None:
    scores = zip((0.895, 0.900, 0.630, 0.605, 0.89, 0.885), "aabbaa", strict=True)
    past = [night(n, accuracy=score, runner=runner) for n, (score, runner) in enumerate(scores)]
    found = trend(past, None)
    assert found is not None
    assert found.kind is SeriesKind.TWO_VALUED
    assert set(found.by_runner) == {"a", "b"}


def test_b12_the_same_code_with_other_dependencies_is_the_environment() -> None:
    scores = ((1135, "2.9.0"), (1130, "2.9.0"), (1141, "2.9.0"), *[(1053, "2.9.1")] * 3)
    past = [
        night(n, accuracy=right / 1319, dependencies={"torch": torch}, revision="commit:abc")
        for n, (right, torch) in enumerate(scores)
    ]
    found = trend(past, None)
    assert found is not None
    assert found.kind is SeriesKind.ENVIRONMENT
    assert "torch 2.9.0 → 2.9.1" in found.summary


def test_two_nights_are_no_trend() -> None:
    assert trend(nights("gg"), None) is None
