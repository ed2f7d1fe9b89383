from __future__ import annotations

import math

import numpy as np
import pytest

from poolbisect.evidence.baseline import (
    BaselineScore,
    SpreadKind,
    baseline_of,
    baseline_p_value,
    judge_score,
    z_score,
)
from poolbisect.evidence.gates import Gate
from poolbisect.evidence.verdict import Verdict

UPSTREAM = BaselineScore(mean=0.776, sd=0.011)


def test_the_padding_regression_lies_five_spreads_below_its_baseline():
    judged = judge_score(0.72, UPSTREAM, smallest_drop_of_interest=0.056)
    assert round(judged.z, 2) == -5.09
    assert judged.verdict is Verdict.BAD


def test_a_significant_drop_that_passes_its_gate_is_still_reported():
    judged = judge_score(
        0.870, BaselineScore(0.895, 0.007), smallest_drop_of_interest=0.03, gate=Gate(0.85)
    )
    assert judged.gate is not None
    assert judged.gate.passed
    assert judged.significant
    assert judged.verdict is Verdict.BAD
    assert "though it passes its gate" in judged.reason


def test_a_healthy_score_is_good_only_for_drops_one_run_can_show():
    good = judge_score(0.77, UPSTREAM, smallest_drop_of_interest=0.04)
    blind = judge_score(0.77, UPSTREAM, smallest_drop_of_interest=0.02)
    assert (good.verdict, blind.verdict) == (Verdict.GOOD, Verdict.UNKNOWN)
    assert good.detectable == pytest.approx(3.2415 * 0.011, rel=1e-4)


def test_a_significant_drop_below_the_minimum_effect_is_not_bad():
    tight = BaselineScore(0.776, 0.001)
    assert judge_score(0.77, tight, smallest_drop_of_interest=0.01).verdict is Verdict.BAD
    judged = judge_score(0.77, tight, smallest_drop_of_interest=0.01, minimum_effect=0.01)
    assert judged.verdict is Verdict.GOOD
    assert judged.significant


def test_a_baseline_without_spread_makes_any_other_score_a_change():
    still = BaselineScore(0.776, 0.0)
    assert z_score(0.776, still) == 0.0
    assert z_score(0.775, still) == -math.inf
    assert judge_score(0.775, still, smallest_drop_of_interest=0.01).verdict is Verdict.BAD


def test_few_baseline_runs_make_the_p_value_larger():
    p_values = [baseline_p_value(0.75, BaselineScore(0.776, 0.011, runs)) for runs in (3, 8, 61)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[-1] > baseline_p_value(0.75, UPSTREAM)
    formula = BaselineScore(0.776, 0.011, 3, SpreadKind.BINOMIAL)
    assert baseline_p_value(0.75, formula) == baseline_p_value(0.75, UPSTREAM)


def test_prediction_from_few_runs_keeps_its_level():
    rng = np.random.default_rng(0)
    alarms = sum(
        baseline_p_value(float(rng.normal(0.776, 0.011)), baseline_of(rng.normal(0.776, 0.011, 5)))
        < 0.05
        for _ in range(3000)
    )
    assert alarms / 3000 == pytest.approx(0.05, abs=0.012)


def test_impossible_baselines_are_refused():
    with pytest.raises(ValueError, match="impossible baseline"):
        BaselineScore(1.2, 0.1)
    with pytest.raises(ValueError, match="at least two runs"):
        BaselineScore(0.8, 0.1, runs=1)
    with pytest.raises(ValueError, match="at least two runs"):
        baseline_of([0.8])
