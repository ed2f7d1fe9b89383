from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.gates import Gate, attempts_at, check_gate, pass_odds


@pytest.mark.parametrize(
    ("strict", "single", "best"), [(False, 0.194, 0.476), (True, 0.153, 0.392)]
)
def test_a_build_at_0_72_passes_a_gate_of_0_75_often_enough(strict, single, best):
    odds = pass_odds(0.72, 200, Gate(0.75, strict), attempts=3)
    assert (round(odds.single, 3), round(odds.best_of, 3)) == (single, best)


def test_a_score_equal_to_the_gate_depends_on_strictness_and_says_so():
    strict, loose = check_gate(0.85, Gate(0.85, strict=True)), check_gate(0.85, Gate(0.85))
    assert (strict.passed, loose.passed) == (False, True)
    assert "fails at > 0.85 and would pass at >= 0.85" in strict.note
    assert "passes at >= 0.85 and would fail at > 0.85" in loose.note
    assert check_gate(0.86, Gate(0.85)).note == ""


def test_a_count_that_meets_the_gate_exactly_is_a_tie_in_spite_of_binary_fractions():
    # 0.29 * 100 is 28.999999999999996.
    assert pass_odds(1.0, 100, Gate(0.29)).single == 1.0
    assert check_gate(29 / 100, Gate(0.29)).passed
    assert pass_odds(0.5, 100, Gate(0.29)).single > pass_odds(0.5, 100, Gate(0.29, True)).single


@given(st.floats(0.05, 0.95), st.integers(1, 400), st.floats(0, 1), st.integers(1, 5))
def test_more_attempts_and_looser_gates_never_lower_the_odds(accuracy, n, gate, attempts):
    loose, strict = (pass_odds(accuracy, n, Gate(gate, s), attempts) for s in (False, True))
    assert loose.single >= strict.single
    assert loose.best_of >= loose.single - 1e-12


def test_the_best_attempt_is_shown_among_all_of_them():
    attempts = attempts_at([0.72, 0.755, 0.731], Gate(0.75))
    assert (attempts.best, attempts.passed) == (0.755, 1)
    assert str(attempts) == ("best 0.755 of 3 attempts (0.72, 0.755, 0.731; mean 0.7353), 1 passed")


def test_impossible_input_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        Gate(85.0)
    with pytest.raises(ValueError, match="impossible"):
        pass_odds(0.7, 0, Gate(0.5))
    with pytest.raises(ValueError, match="no attempt"):
        attempts_at([], Gate(0.5))
