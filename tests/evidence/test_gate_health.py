from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.gate_health import (
    GateFault,
    false_fail_rate,
    gate_health,
    gate_health_of,
)
from poolbisect.evidence.gates import Gate
from poolbisect.evidence.intervals import wilson


def test_a_gate_inside_the_noise_with_the_rate_that_was_observed():
    health = gate_health(0.860, 0.009, Gate(0.85, strict=True), questions=200, observed=(12, 61))
    assert health.faults == (GateFault.NOISY,)
    assert health.false_fail_rate == pytest.approx(0.202, abs=0.001)
    # 12 of 61 agrees with the normal model, with and without the step between scores.
    assert health.false_fail_rate * 61 == pytest.approx(12, abs=0.5)
    assert 0.133 in wilson(12, 61)
    assert gate_health(0.860, 0.009, Gate(0.85, True)).false_fail_rate == pytest.approx(
        0.133, abs=0.001
    )


def test_the_suggested_gate_does_not_fail_healthy_runs():
    health = gate_health(0.860, 0.009, Gate(0.85, strict=True))
    assert health.suggested == Gate(0.832, strict=True)
    assert false_fail_rate(0.860, 0.009, health.suggested) <= 0.001


def test_0_935_fails_healthy_runs_one_time_in_ten():
    assert round(false_fail_rate(0.9439, 0.0069, Gate(0.935)), 3) == 0.099


@pytest.mark.parametrize("sd", [0.0, 0.001, 0.005])
def test_dead_gates_are_named(sd):
    assert gate_health(0.855, sd, Gate(0.86)).faults == (GateFault.ALWAYS_FAILS,)
    assert gate_health(0.584, sd, Gate(0.38)).faults == (GateFault.NEVER_FAILS,)


def test_a_gate_clear_of_the_noise_and_close_enough_is_healthy():
    assert gate_health(0.776, 0.007, Gate(0.75)).faults == ()


def test_strictness_matters_where_a_score_can_equal_the_gate():
    loose, strict = Gate(0.85), Gate(0.85, strict=True)
    assert false_fail_rate(0.86, 0.009, strict, 200) > false_fail_rate(0.86, 0.009, loose, 200)
    assert false_fail_rate(0.85, 0.0, loose) == 0.0
    assert false_fail_rate(0.85, 0.0, strict) == 1.0


def test_the_step_correction_matches_runs_on_200_questions():
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(0.86, 0.009, 20_000) * 200) / 200
    for gate in (Gate(0.85), Gate(0.85, True)):
        failed = gate_health_of(scores.tolist(), gate).observed
        assert failed is not None
        assert failed[0] / failed[1] == pytest.approx(
            false_fail_rate(0.86, 0.009, gate, 200), abs=0.01
        )


@given(
    st.floats(0.5, 0.95),
    st.just(0.0) | st.floats(1e-6, 0.03),
    st.booleans(),
    st.sampled_from([None, 200, 1319]),
)
def test_a_suggested_gate_always_keeps_the_tolerated_rate(mean, sd, strict, questions):
    suggested = gate_health(mean, sd, Gate(0.8, strict), questions=questions).suggested
    assert suggested.strict is strict
    assert false_fail_rate(mean, sd, suggested, questions) <= 0.001 + 1e-9


def test_impossible_input_is_refused():
    with pytest.raises(ValueError, match="impossible"):
        gate_health(0.8, -1, Gate(0.7))
    with pytest.raises(ValueError, match="at least two"):
        gate_health_of([0.8], Gate(0.7))
