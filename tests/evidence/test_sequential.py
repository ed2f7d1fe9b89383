from __future__ import annotations

import numpy as np
import pytest

from poolbisect.evidence.sequential import SequentialTest
from poolbisect.evidence.verdict import Verdict


def verdicts(drop: float, discordant: float, trials: int, look: int = 40, limit: int = 4000):
    """Final verdicts and questions asked of seeded runs, looking every `look` questions."""
    rng = np.random.default_rng(0)
    lost, gained = (discordant + drop) / 2, (discordant - drop) / 2
    found = []
    for _ in range(trials):
        test = SequentialTest(drop=0.056)
        for cells in rng.multinomial(look, [lost, gained, 1 - discordant], limit // look).tolist():
            state = test.add(*cells)
            if state.verdict is not Verdict.UNKNOWN:
                break
        found.append(test.state)
    return found


@pytest.mark.parametrize("discordant", [0.05, 0.2])
def test_a_healthy_subject_is_rarely_called_bad_however_often_one_looks(discordant):
    found = verdicts(0.0, discordant, trials=200)
    assert sum(s.verdict is Verdict.BAD for s in found) / 200 <= 0.025
    assert sum(s.verdict is Verdict.GOOD for s in found) / 200 > 0.9


@pytest.mark.parametrize("discordant", [0.06, 0.2])
def test_a_drop_of_interest_is_rarely_called_good(discordant):
    found = verdicts(0.056, discordant, trials=200)
    assert sum(s.verdict is Verdict.GOOD for s in found) / 200 <= 0.1
    assert sum(s.verdict is Verdict.BAD for s in found) / 200 >= 0.9


def test_a_large_drop_stops_early():
    found = verdicts(0.2, 0.25, trials=100, look=10)
    assert all(s.verdict is Verdict.BAD for s in found)
    assert np.mean([s.asked for s in found]) < 100


def test_one_question_at_a_time_gives_the_same_p_as_a_batch_and_keeps_its_verdict():
    single, batch = SequentialTest(0.05), SequentialTest(0.05)
    answers = [(True, False)] * 12 + [(True, True)] * 20 + [(False, False)] * 5
    for before, after in answers:
        state = single.update(before, after)
    batch.add(lost=12)
    assert batch.state.p_drop == pytest.approx(state.p_drop)
    assert state.verdict is Verdict.BAD
    assert state.asked == 37
    # Later gains cannot take back what was decided.
    assert single.add(gained=40).verdict is Verdict.BAD
    assert single.state.p_drop == state.p_drop


def test_identical_answers_end_good():
    test = SequentialTest(0.05)
    assert test.add(concordant=20).verdict is Verdict.UNKNOWN
    assert test.add(concordant=200).verdict is Verdict.GOOD


def test_impossible_input_is_refused():
    with pytest.raises(ValueError, match="must lie in"):
        SequentialTest(0.0)
    with pytest.raises(ValueError, match="negative"):
        SequentialTest(0.1).add(lost=-1)
