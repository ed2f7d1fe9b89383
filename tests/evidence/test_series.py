from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.evidence.baseline import BaselineScore, SpreadKind, baseline_of
from poolbisect.evidence.environment import SeriesPoint, VersionChange
from poolbisect.evidence.findings import SeriesKind
from poolbisect.evidence.series import FALSE_ALARM, classify_series

DRIFT = [
    *(0.896, 0.894, 0.893, 0.890, 0.889, 0.886, 0.885),
    *(0.882, 0.881, 0.878, 0.877, 0.874, 0.873, 0.870),
]
FLAKY = [0.895, 0.900, 0.630, 0.605, 0.89, 0.885]
GOOD = [0.778, 0.771, 0.783, 0.769, 0.790, 0.765, 0.774, 0.781]
BAD = [0.721, 0.719, 0.722, 0.720, 0.718, 0.723, 0.719, 0.721]
UPSTREAM = BaselineScore(mean=0.776, sd=0.011)
OLD, NEW = {"torch": "2.9.0", "triton": "3.5"}, {"torch": "2.9.1", "triton": "3.5"}
NEW_TORCH = (VersionChange("torch", "2.9.0", "2.9.1"),)


def nights(scores, **columns) -> list[SeriesPoint]:
    """One point a night; each column is a list, or a revision a night if none is given."""
    columns.setdefault("revision", [f"r{i}" for i in range(len(scores))])
    rows = zip(*columns.values(), strict=True)
    return [
        SeriesPoint(float(score), **dict(zip(columns, row, strict=True)))
        for score, row in zip(scores, rows, strict=True)
    ]


# What was recorded


@pytest.mark.parametrize("baseline", [None, BaselineScore(0.895, 0.007)])
def test_a_slow_decline_is_a_drift_without_a_first_bad_night(baseline):
    finding = classify_series(nights(DRIFT), baseline=baseline)
    assert finding.kind is SeriesKind.DRIFT
    assert round(finding.slope, 3) == -0.002
    assert finding.first_bad is None
    assert finding.transitions == ()


@pytest.mark.parametrize("baseline", [None, BaselineScore(0.895, 0.007)])
def test_scores_that_follow_the_runner_name_no_culprit(baseline):
    runner = ["h100-a", "h100-a", "h100-b", "h100-b", "h100-a", "h100-a"]
    finding = classify_series(nights(FLAKY, runner=runner), baseline=baseline)
    assert finding.kind is SeriesKind.TWO_VALUED
    assert finding.by_runner == pytest.approx({"h100-a": 0.8925, "h100-b": 0.6175})
    assert finding.first_bad is None
    assert "follows the runner" in finding.summary


def test_the_same_scores_on_one_runner_have_a_first_bad_and_a_first_fixed_night():
    finding = classify_series(nights(FLAKY, runner=["h100-a"] * 6))
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is not None
    assert finding.first_fixed is not None
    assert (finding.first_bad.index, finding.first_fixed.index) == (2, 4)


def test_a_step_whose_spread_shrinks_is_a_step():
    finding = classify_series(nights(GOOD + BAD))
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is not None
    assert finding.first_bad.index == 8
    assert finding.first_bad.change == pytest.approx(-0.056)
    assert finding.first_fixed is None


def test_one_night_below_a_recorded_baseline_is_enough():
    finding = classify_series(nights([*GOOD, 0.72]), baseline=UPSTREAM)
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is not None
    assert finding.first_bad.index == 8


def test_the_same_score_three_nights_running_is_the_environment_if_the_code_stood_still():
    bad = 1053 / 1319
    scores = [1135 / 1319, 1130 / 1319, 1141 / 1319, bad, bad, bad]
    finding = classify_series(
        nights(scores, revision=["abc"] * 6, dependencies=[OLD] * 3 + [NEW] * 3)
    )
    assert finding.kind is SeriesKind.ENVIRONMENT
    assert finding.deterministic
    assert finding.same_nights == 3
    assert finding.changes == NEW_TORCH
    assert "torch 2.9.0 → 2.9.1" in finding.summary
    assert finding.first_bad is None


def test_one_good_night_before_three_identical_ones_is_enough_for_the_environment():
    bad = 1053 / 1319
    columns = {"revision": ["abc"] * 4, "dependencies": [OLD] + [NEW] * 3}
    finding = classify_series(nights([1135 / 1319, bad, bad, bad], **columns))
    assert (finding.kind, finding.deterministic) == (SeriesKind.ENVIRONMENT, True)
    assert finding.changes == NEW_TORCH


def test_three_identical_nights_off_the_baseline_are_the_environment():
    bad = 1053 / 1319
    columns = {"revision": ["abc"] * 3, "dependencies": [OLD, NEW, NEW]}
    finding = classify_series(nights([bad] * 3, **columns), baseline=BaselineScore(0.86, 0.009))
    assert (finding.kind, finding.deterministic) == (SeriesKind.ENVIRONMENT, True)
    assert finding.changes == NEW_TORCH


def test_noise_that_freezes_when_the_dependencies_change_is_the_environment():
    scores = [1135 / 1319, 1120 / 1319, 1150 / 1319, *[1136 / 1319] * 3]
    columns = {"revision": ["abc"] * 6, "dependencies": [OLD] * 3 + [NEW] * 3}
    finding = classify_series(nights(scores, **columns), baseline=BaselineScore(0.86, 0.011))
    assert (finding.kind, finding.deterministic) == (SeriesKind.ENVIRONMENT, True)
    assert finding.changes == NEW_TORCH


def test_a_deterministic_subject_that_keeps_its_score_is_steady():
    columns = {"revision": ["abc"] * 6, "dependencies": [OLD] * 3 + [NEW] * 3}
    finding = classify_series(nights([1024 / 1319] * 6, **columns))
    assert finding.kind is SeriesKind.STEADY
    assert finding.deterministic
    assert finding.changes == NEW_TORCH


# What else there is to tell apart


def test_a_step_with_new_code_and_new_dependencies_says_that_both_changed():
    finding = classify_series(nights(GOOD + BAD, dependencies=[OLD] * 8 + [NEW] * 8))
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is not None
    assert finding.first_bad.code_changed is True
    assert finding.first_bad.confounded == ("dependencies",)


def test_a_step_with_a_change_of_runner_says_so():
    finding = classify_series(nights(GOOD + BAD, runner=["a"] * 8 + ["b"] * 8))
    assert finding.first_bad is not None
    assert finding.first_bad.confounded == ("runner",)
    assert finding.first_bad.runner == ("a", "b")


def test_a_step_without_recorded_revisions_does_not_accuse_the_environment():
    columns = {"revision": [None] * 16, "dependencies": [OLD] * 8 + [NEW] * 8}
    finding = classify_series(nights(GOOD + BAD, **columns))
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is not None
    assert finding.first_bad.code_changed is None


def test_a_step_where_nothing_recorded_changed_is_still_not_the_code():
    finding = classify_series(nights(GOOD + BAD, revision=["abc"] * 16))
    assert finding.kind is SeriesKind.ENVIRONMENT
    assert "nothing that was recorded" in finding.summary


def test_two_regressions_are_two_transitions():
    rng = np.random.default_rng(0)
    scores = rng.normal(np.repeat([0.80, 0.77, 0.74], 15), 0.004)
    finding = classify_series(nights(scores))
    assert finding.kind is SeriesKind.STEP
    assert [t.index for t in finding.transitions] == [15, 30]


def test_runners_that_take_turns_do_not_hide_a_step():
    rng = np.random.default_rng(0)
    scores = rng.normal(np.repeat([0.776, 0.72], 20), 0.011)
    finding = classify_series(nights(scores, runner=["a", "b"] * 20), baseline=UPSTREAM)
    assert finding.first_bad is not None
    assert finding.first_bad.index == 20


def test_a_level_that_keeps_coming_back_is_flaky_and_no_row_of_steps():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.normal(np.repeat([0.776, 0.72, 0.776, 0.72, 0.776, 0.72], 8), 0.011)
        assert classify_series(nights(scores), baseline=UPSTREAM).kind is SeriesKind.TWO_VALUED


def test_a_rise_is_a_step_but_has_no_first_bad():
    finding = classify_series(nights(BAD + GOOD))
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is None


def test_a_deterministic_baseline_makes_any_other_score_a_step():
    baseline = baseline_of([1024 / 1319] * 5)
    scores = [1024 / 1319] * 4 + [1018 / 1319]
    finding = classify_series(nights(scores), baseline=baseline)
    assert finding.kind is SeriesKind.STEP
    assert finding.first_bad is not None
    assert finding.first_bad.index == 4


def test_a_recorded_spread_that_is_too_small_is_not_believed():
    rng = np.random.default_rng(0)
    finding = classify_series(nights(rng.normal(0.776, 0.033, 90)), baseline=UPSTREAM)
    assert finding.noisier
    assert finding.kind is SeriesKind.STEADY
    assert finding.sd == pytest.approx(0.033, rel=0.2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_nights_on_the_baseline_are_steady(count):
    assert classify_series(nights(GOOD[:count]), baseline=UPSTREAM).kind is SeriesKind.STEADY
    assert classify_series(nights(GOOD[:count])).kind is SeriesKind.STEADY


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.booleans())
def test_any_series_gets_an_answer_with_its_facts(scores, known):
    finding = classify_series(nights(scores), baseline=UPSTREAM if known else None)
    assert finding.summary
    assert 0 <= finding.p_value <= 1
    for transition in finding.transitions:
        assert transition.first <= transition.index <= transition.last < len(scores)
    assert (finding.kind is SeriesKind.DRIFT) == (finding.slope != 0)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="at least one night"):
        classify_series([])
    with pytest.raises(ValueError, match="false alarm"):
        classify_series(nights([0.5]), false_alarm=0)


# Ninety nights


def ninety(kind: str, rng: np.random.Generator) -> list[SeriesPoint]:
    night = np.arange(90)
    if kind == "step":
        return nights(rng.normal(np.where(night < 60, 0.776, 0.72), 0.011))
    if kind == "drift":
        return nights(rng.normal(0.776 - 0.002 * night, 0.011))
    if kind == "two-valued":
        runner = rng.integers(0, 2, 90)
        scores = rng.normal(np.where(runner, 0.61, 0.776), 0.011)
        return nights(scores, runner=[f"runner-{r}" for r in runner])
    scores = np.where(night < 60, rng.normal(0.776, 0.011, 90), 950 / 1319)
    revision = [f"r{min(i, 55)}" for i in night]
    return nights(scores, revision=revision, dependencies=[OLD] * 60 + [NEW] * 30)


@pytest.mark.parametrize("baseline", [UPSTREAM, None], ids=["recorded", "unrecorded"])
@pytest.mark.parametrize("kind", ["step", "drift", "two-valued", "environment"])
def test_ninety_nights_are_named_rightly(kind, baseline):
    rng = np.random.default_rng(0)
    findings = [classify_series(ninety(kind, rng), baseline=baseline) for _ in range(100)]
    named = Counter(str(finding.kind) for finding in findings)
    assert named[kind] >= 97, named
    if kind == "step":
        bad = [finding.first_bad for finding in findings]
        assert all(t is not None and t.first <= 60 <= t.last for t in bad)
    if kind == "environment":
        right = [f for f in findings if f.kind is SeriesKind.ENVIRONMENT]
        assert all(finding.changes == NEW_TORCH for finding in right)
        assert all(finding.deterministic for finding in right)


def test_two_values_without_a_runner_column_are_still_no_step():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.normal(np.where(rng.random(90) < 0.5, 0.61, 0.776), 0.011)
        finding = classify_series(nights(scores), baseline=UPSTREAM)
        assert finding.kind is SeriesKind.TWO_VALUED
        assert finding.levels == pytest.approx((0.61, 0.776), abs=0.02)


@pytest.mark.parametrize("rate", [FALSE_ALARM, 0.05])
@pytest.mark.parametrize(
    ("baseline", "questions"),
    [(UPSTREAM, None), (UPSTREAM, 1319), (None, None), (None, 200)],
)
def test_ninety_healthy_nights_raise_no_more_alarms_than_stated(baseline, questions, rate):
    rng = np.random.default_rng(7)
    scores = rng.normal(0.776, 0.011, (1000, 90))
    if questions:
        scores = np.round(scores * questions) / questions
    alarms = 0
    for row in scores:
        points = nights(row, runner=["a", "b", "c"] * 30)
        finding = classify_series(points, baseline=baseline, questions=questions, false_alarm=rate)
        alarms += finding.kind is not SeriesKind.STEADY
    # At a rate of 0.001 a second alarm in a thousand series would still be chance.
    assert alarms <= max(2, rate * 1000)


def test_a_baseline_measured_in_few_runs_keeps_the_rate_too():
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(600):
        baseline = baseline_of(rng.normal(0.776, 0.011, 10).tolist())
        assert baseline.spread is SpreadKind.RUN_TO_RUN
        points = nights(rng.normal(0.776, 0.011, 30))
        finding = classify_series(points, baseline=baseline, false_alarm=0.05)
        alarms += finding.kind is not SeriesKind.STEADY
    assert alarms <= 30


@pytest.mark.slow
def test_looking_every_night_for_ninety_nights_stays_below_one_alarm_in_fifty():
    alarmed = 0
    for seed in range(100):
        points = nights(np.random.default_rng(seed).normal(0.776, 0.011, 90))
        alarmed += any(
            classify_series(points[:night], baseline=UPSTREAM).kind is not SeriesKind.STEADY
            for night in range(1, 91)
        )
    assert alarmed <= 2
