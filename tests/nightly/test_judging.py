"""Is a series bad tonight: significant and a point, against reference, baseline and last night."""

from __future__ import annotations

import msgspec
import pytest

from poolbisect.baselines import Baseline
from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended, MemoryEvents
from poolbisect.nightly.comparisons import Rules, comparisons_of, drop_of_interest
from poolbisect.nightly.judging import judge_night
from poolbisect.nightly.series import Tonight
from poolbisect.scenario import Judging, Scenario, Symptom

from .conftest import MakeTonight
from .pasts import night, nights

RULES = Rules(alpha=0.001, minimum_drop=0.01)


def verdict(tonight: Tonight, rules: Rules = RULES) -> Verdict:
    return judge_night([tonight], rules).series[0].verdict


def test_the_first_night_is_as_run_says_and_says_that_there_is_nothing_to_compare(
    tonight: MakeTonight,
) -> None:
    joint = judge_night([tonight()], RULES)
    assert joint.series[0].verdict is Verdict.GOOD
    assert "nothing to compare it with yet" in joint.series[0].reason
    assert joint.tests == 0


def test_a_drop_against_the_last_good_night_is_bad_and_counts_its_questions(
    tonight: MakeTonight,
) -> None:
    one = tonight(range(295 + 74), past=nights("g"), before=range(295))
    joint = judge_night([one], RULES)
    (judged,) = joint.series
    assert judged.verdict is Verdict.BAD
    assert judged.worst is not None
    assert judged.worst.paired is not None
    assert (judged.worst.paired.lost, judged.worst.paired.gained) == (74, 0)
    assert judged.loss == pytest.approx(74 / 1319)
    assert "2026-05-01" in judged.reason


def test_a_significant_drop_of_less_than_a_point_is_not_red(
    tonight: MakeTonight, canary: Scenario
) -> None:
    coarse = msgspec.structs.replace(canary, judging=Judging(smallest_drop=0.03))
    small = tonight(range(12), past=nights("g"), before=range(0), scenario=coarse)
    judged = judge_night([small], RULES).series[0]
    assert judged.tests[0].judgement.significant
    assert judged.verdict is Verdict.GOOD
    assert "less than the 1.0 points that count" in judged.reason
    assert verdict(small, Rules(0.001, minimum_drop=0.005)) is Verdict.BAD


def test_a_point_that_is_not_significant_is_not_red_either(tonight: MakeTonight) -> None:
    # 17 lost and 3 gained: 1.1 points, p = 0.0026.
    swapped = tonight(range(3, 20), past=nights("g"), before={0, 1, 2})
    judged = judge_night([swapped], RULES).series[0]
    assert judged.tests[0].judgement.p_value == pytest.approx(0.0026, abs=5e-5)
    assert -judged.tests[0].judgement.difference >= 0.01
    assert judged.verdict is not Verdict.BAD


def test_too_few_questions_are_unknown_and_not_good(tonight: MakeTonight) -> None:
    few = tonight(range(10), past=nights("g"), before=range(10), asked=100)
    joint = judge_night([few], RULES)
    assert joint.series[0].verdict is Verdict.UNKNOWN
    assert "too few questions" in joint.series[0].reason


def test_closing_a_finding_takes_only_the_power_to_see_a_drop_of_its_size(
    tonight: MakeTonight,
) -> None:
    bad = (night(0), night(1, "bad", 0.4, loss=0.34))
    few = tonight(range(60), past=bad, before=range(60), asked=300)
    assert drop_of_interest(few) == 0.34
    assert verdict(few) is Verdict.GOOD
    assert verdict(tonight(range(60), past=nights("g"), before=range(60), asked=300)) is (
        Verdict.UNKNOWN
    )


def test_without_the_answers_of_the_last_good_night_the_comparison_is_unpaired_and_says_so(
    tonight: MakeTonight,
) -> None:
    one = tonight(range(295 + 250), past=(night(0, correct=1024),))
    judged = judge_night([one], RULES).series[0]
    assert judged.verdict is Verdict.BAD
    assert "(unpaired)" in judged.reason
    assert judged.worst is not None
    assert judged.worst.paired is None


def test_b1_a_score_far_below_its_baseline_is_bad_without_any_past(
    tonight: MakeTonight, miniature_baseline: Baseline
) -> None:
    noisy = msgspec.structs.replace(miniature_baseline, mean=0.776, spread=0.011, runs=None)
    wrong = range(round(1319 * 0.28))
    judged = judge_night([tonight(wrong, baseline=noisy)], RULES).series[0]
    assert judged.verdict is Verdict.BAD
    assert "baseline 0.776 ± 0.0110" in judged.reason
    healthy = tonight(range(round(1319 * 0.23)), baseline=noisy)
    assert verdict(healthy) is not Verdict.BAD


def test_a_wide_baseline_does_not_keep_a_first_night_from_being_the_record(
    tonight: MakeTonight, miniature_baseline: Baseline
) -> None:
    wide = msgspec.structs.replace(miniature_baseline, mean=0.9, spread=0.0132, runs=None)
    first = tonight(range(132), baseline=wide)
    assert verdict(first) is Verdict.GOOD
    later = tonight(range(132), baseline=wide, past=nights("g"), before=range(132))
    assert verdict(later) is Verdict.GOOD
    few = tonight(range(10), asked=100, baseline=wide, past=nights("g"), before=range(10))
    assert verdict(few) is Verdict.UNKNOWN


def test_the_reference_itself_is_not_compared_with_itself(tonight: MakeTonight) -> None:
    other = tonight(range(400), reference_wrong=range(300), subject="original")
    assert [test.against for test in comparisons_of(other, RULES)] == ["the reference corrected"]
    assert comparisons_of(tonight(), RULES) == []


def test_many_scenarios_raise_no_more_alarms_than_one(tonight: MakeTonight) -> None:
    # 16 lost and 1 gained: p = 0.00027, significant alone at 0.001 but not among ten.
    weak = {"wrong": range(1, 17), "past": nights("g"), "before": {0}}
    assert verdict(tonight(**weak)) is Verdict.BAD
    quiet = [
        tonight(range(5), past=nights("g"), before=range(5), role=f"role {number}")
        for number in range(9)
    ]
    joint = judge_night([tonight(**weak), *quiet], RULES)
    assert joint.series[0].verdict is Verdict.UNKNOWN
    assert "not significant among 10" in joint.series[0].reason
    assert joint.tests == 10
    assert {judged.verdict for judged in joint.series[1:]} == {Verdict.GOOD}


def test_a_good_score_proves_nothing_where_the_last_slot_was_not_used(
    tonight: MakeTonight,
) -> None:
    one = tonight(range(5), past=nights("g"), before=range(5), last_slot_used=False)
    assert verdict(one) is Verdict.UNKNOWN
    fell = tonight(range(300), past=nights("g"), before=range(5), last_slot_used=False)
    assert verdict(fell) is Verdict.BAD


def test_what_was_not_measured_is_judged_as_run_judges_it(tonight: MakeTonight) -> None:
    crashed = tonight(
        past=nights("g"), before=range(5), ended=Ended.CRASHED, verdict=Verdict.UNTESTABLE
    )
    assert verdict(crashed) is Verdict.UNTESTABLE
    assert comparisons_of(crashed, RULES) == []


def test_a_contract_scenario_is_red_by_what_the_guard_saw_also_on_the_reference(
    tonight: MakeTonight, canary: Scenario
) -> None:
    contract = msgspec.structs.replace(canary, symptom=Symptom.CONTRACT)
    breached = MemoryEvents(watched=True, padded_writes=3, padded_targets=("request slot 0",))
    assert verdict(tonight(scenario=contract, memory=breached)) is Verdict.BAD
    assert verdict(tonight(scenario=contract)) is Verdict.GOOD
    # Elsewhere the symptom decides: accesses without an effect are no drop.
    assert verdict(tonight(memory=breached)) is Verdict.GOOD


def test_of_several_comparisons_that_are_bad_the_last_good_night_tells(
    tonight: MakeTonight, miniature_baseline: Baseline
) -> None:
    one = tonight(
        range(600),
        past=nights("g"),
        before=range(290),
        reference_wrong=range(280),
        baseline=miniature_baseline,
        subject="original",
    )
    judged = judge_night([one], RULES).series[0]
    assert {test.judgement.verdict for test in judged.tests} == {Verdict.BAD}
    assert len(judged.tests) == 3
    assert judged.worst is not None
    assert judged.worst.paired is not None
    assert judged.worst.paired.lost == 310
