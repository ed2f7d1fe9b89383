from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.evidence.multiple import holm, judge_jointly
from poolbisect.evidence.paired import PairedComparison
from poolbisect.evidence.verdict import Judgement, Verdict, judge


def judged(lost: int, gained: int, n: int = 1319, interest: float = 0.05) -> Judgement:
    same = n - lost - gained
    wrong = same // 4
    comparison = PairedComparison(same - wrong, lost, gained, wrong)
    return judge(comparison, smallest_drop_of_interest=interest)


def test_holm_worked_example():
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert list(adjusted) == ["a", "b", "c", "d"]


@settings(max_examples=40)
@given(st.dictionaries(st.integers(0, 99).map(str), st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    adjusted = holm(p_values)
    for a in p_values:
        assert p_values[a] <= adjusted[a] <= 1
        for b in p_values:
            if p_values[a] <= p_values[b]:
                assert adjusted[a] <= adjusted[b]


def test_one_clear_drop_among_scenarios_makes_the_subject_bad():
    joint = judge_jointly({"mimo": judged(60, 10), "control": judged(0, 0)})
    assert joint.verdict is Verdict.BAD
    assert joint.scenarios["control"].verdict is Verdict.GOOD


def test_a_chance_finding_among_many_scenarios_is_not_bad():
    # 14 lost, 4 gained: p = 0.031 alone, 0.31 among ten.
    alone = judged(14, 4)
    assert alone.verdict is Verdict.BAD
    joint = judge_jointly({"odd": alone} | {f"healthy-{i}": judged(0, 0) for i in range(9)})
    assert joint.scenarios["odd"].verdict is Verdict.UNKNOWN
    assert "among 10 scenarios" in joint.scenarios["odd"].reason
    assert joint.verdict is Verdict.UNKNOWN


def test_all_good_is_good_and_one_unknown_is_not():
    assert judge_jointly({"a": judged(0, 0), "b": judged(1, 1)}).verdict is Verdict.GOOD
    mixed = {"a": judged(0, 0), "b": judged(0, 0, n=20)}
    assert judge_jointly(mixed).verdict is Verdict.UNKNOWN


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="no scenario"):
        judge_jointly({})
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm({"a": 1.5})
