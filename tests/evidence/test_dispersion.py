from __future__ import annotations

import numpy as np
import pytest

from poolbisect.evidence.dispersion import compare_groups, dispersion, flips

GOOD = [0.778, 0.771, 0.783, 0.769, 0.790, 0.765, 0.774, 0.781]
BAD = [0.721, 0.719, 0.722, 0.720, 0.718, 0.723, 0.719, 0.721]


def test_a_deterministic_fault_shrinks_the_spread():
    comparison = compare_groups(GOOD, BAD)
    assert comparison.difference == pytest.approx(-0.056)
    assert comparison.p_value < 1e-6
    assert comparison.spread_ratio == pytest.approx(0.205, abs=0.001)
    assert comparison.spread_p_value < 0.001


def test_equal_groups_keep_their_level():
    rng = np.random.default_rng(0)
    pairs = [compare_groups(*rng.normal(0.77, [[0.01], [0.002]], (2, 8))) for _ in range(2000)]
    assert sum(c.p_value < 0.05 for c in pairs) / 2000 == pytest.approx(0.05, abs=0.015)
    same = [compare_groups(*rng.normal(0.77, 0.01, (2, 8))) for _ in range(2000)]
    assert sum(c.spread_p_value < 0.05 for c in same) / 2000 == pytest.approx(0.05, abs=0.015)


def test_one_group_without_spread_can_still_be_compared():
    comparison = compare_groups([0.77, 0.78, 0.775], [0.72, 0.72, 0.72])
    assert comparison.spread_ratio == 0.0
    assert comparison.p_value < 0.01
    assert compare_groups([0.72, 0.72], [0.77, 0.78]).spread_ratio == float("inf")
    with pytest.raises(ValueError, match="deterministic"):
        compare_groups([0.77, 0.77], [0.72, 0.72])
    with pytest.raises(ValueError, match="at least two"):
        compare_groups([0.77], [0.72, 0.71])


def test_runs_on_the_same_questions_move_less_than_the_binomial_error():
    spread = dispersion(BAD, 1319)
    assert spread.run_sd < spread.binomial_sd
    assert spread.ratio < 1
    assert spread.p_under < 0.001
    assert spread.correlation == 0.0


def test_beta_binomial_runs_show_their_correlation():
    rng = np.random.default_rng(0)
    rho, n = 0.01, 500
    a, b = 0.8 * (1 / rho - 1), 0.2 * (1 / rho - 1)
    scores = rng.binomial(n, rng.beta(a, b, 2000)) / n
    spread = dispersion(scores.tolist(), n)
    assert spread.correlation == pytest.approx(rho, rel=0.1)
    assert spread.p_over < 1e-9


def test_binomial_runs_are_neither_over_nor_under_dispersed():
    rng = np.random.default_rng(1)
    found = [dispersion((rng.binomial(1319, 0.776, 20) / 1319).tolist(), 1319) for _ in range(500)]
    assert sum(s.p_over < 0.05 for s in found) / 500 == pytest.approx(0.05, abs=0.03)


def test_flips_between_two_runs_are_the_discordant_share():
    found = flips([{"a": True, "b": True, "c": False, "d": False}, {"a": True, "b": False, "c": 0}])
    assert (found.questions, found.flipping) == (3, 1)
    assert found.share == pytest.approx(1 / 3)
    assert found.share in found.interval


def test_a_deterministic_subject_never_flips():
    run = {q: q % 3 > 0 for q in range(100)}
    found = flips([run, dict(run), dict(run)])
    assert (found.share, found.flipping, found.run_sd) == (0.0, 0, 0.0)


def test_flips_predict_the_run_to_run_spread():
    rng = np.random.default_rng(0)
    # Most questions are always right or always wrong, the rest flips.
    chance = np.where(rng.random(400) < 0.8, rng.random(400) < 0.9, rng.random(400))
    runs = rng.random((200, 400)) < chance
    found = flips([dict(enumerate(run)) for run in runs.tolist()])
    assert runs.mean(axis=1).std(ddof=1) == pytest.approx(found.run_sd, rel=0.15)
    assert found.run_sd < dispersion(runs.mean(axis=1).tolist(), 400).binomial_sd


def test_too_little_to_measure_a_spread_is_refused():
    with pytest.raises(ValueError, match="at least two runs"):
        flips([{"a": True}])
    with pytest.raises(ValueError, match="share no question"):
        flips([{"a": True}, {"b": True}])
    with pytest.raises(ValueError, match="two runs"):
        dispersion([0.5], 100)
    with pytest.raises(ValueError, match="no binomial spread"):
        dispersion([1.0, 1.0], 100)
