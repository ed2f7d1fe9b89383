"""From measurements to verdicts, and from verdicts to the exit code of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from poolbisect.baselines import BaselineComparison
from poolbisect.evidence.verdict import Verdict
from poolbisect.judging import RunVerdict, SubjectVerdict, judge_run, judge_subject
from poolbisect.measurement import Ended, Measurement, MemoryEvents, Outcome
from poolbisect.scenario import (
    Expectation,
    Judging,
    Scenario,
    ScenarioSubject,
    Symptom,
    load_scenario,
)

Make = Callable[..., Measurement]
NO_BASELINE = BaselineComparison("no baseline is recorded")
GOOD, BAD, UNKNOWN, UNTESTABLE = Verdict.GOOD, Verdict.BAD, Verdict.UNKNOWN, Verdict.UNTESTABLE


def scenario(
    symptom: Symptom = Symptom.ACCURACY, smallest_drop: float = 0.02, **expect: Expectation
) -> Scenario:
    """The canary with other expectations."""
    subjects = [ScenarioSubject(name=name, expect=value) for name, value in expect.items()]
    return msgspec.structs.replace(
        load_scenario("mimo-canary"),
        symptom=symptom,
        subjects=subjects,
        judging=Judging(smallest_drop=smallest_drop),
    )


def judged(
    measurement: Measurement,
    reference: Measurement | None,
    of: Scenario | None = None,
    questions_to_last_slot: int | None = 128,
    baseline: BaselineComparison = NO_BASELINE,
) -> SubjectVerdict:
    return judge_subject(measurement, reference, of or scenario(), questions_to_last_slot, baseline)


def verdict_of(measured: Make, verdict: Verdict, expect: Expectation | None) -> SubjectVerdict:
    return SubjectVerdict(measured("s", 10), verdict, "", expect)


def test_a_measurement_counts_what_was_answered(measured: Make) -> None:
    whole = measured("s", 10, wrong={0, 1, 2})
    first, second, *rest = whole.answers
    lost = replace(
        whole,
        answers=(
            replace(first, outcome=Outcome.UNANSWERED),
            replace(second, outcome=Outcome.INVALID),
            *rest,
        ),
    )
    assert (lost.asked, lost.answered, lost.correct, lost.invalid) == (10, 9, 7, 1)
    assert lost.accuracy == pytest.approx(7 / 9)
    assert lost.outcomes() == {1: False, 2: False} | dict.fromkeys(range(3, 10), True)
    assert measured("s", 0).accuracy is None


def test_a_significant_drop_is_bad(measured: Make) -> None:
    one = judged(measured("original", wrong=range(300, 400)), measured("corrected"))
    assert one.verdict is BAD
    assert one.comparison is not None
    assert (one.comparison.lost, one.comparison.gained) == (100, 0)
    assert "7.6 points" in one.reason


def test_the_same_answers_are_good(measured: Make) -> None:
    wrong = range(300)
    one = judged(measured("original", wrong=wrong), measured("corrected", wrong=wrong))
    assert one.verdict is GOOD
    assert one.questions_needed is None


def test_a_rise_is_no_regression(measured: Make) -> None:
    one = judged(measured("original"), measured("corrected", wrong=range(100)))
    assert one.verdict is GOOD


def test_too_few_questions_are_unknown_and_say_how_many_would_do(measured: Make) -> None:
    asked, wrong = 200, {1, 2, 3, 4}
    one = judged(measured("original", asked, wrong=wrong), measured("corrected", asked))
    assert one.verdict is UNKNOWN
    assert one.questions_needed is not None
    assert one.questions_needed > asked
    assert f"{one.questions_needed} questions" in one.reason


def test_never_fewer_questions_are_asked_for_than_reach_the_last_slot(measured: Make) -> None:
    one = judged(
        measured("original", 200, wrong={1, 2, 3, 4}), measured("corrected", 200), None, 10**6
    )
    assert one.questions_needed == 10**6


def test_a9_a_fault_too_rare_for_accuracy_is_found_by_the_guard(measured: Make) -> None:
    """6 wrong of 1319: accuracy says what it could have seen, the record says what happened."""
    seen = MemoryEvents(watched=True, reads=90, writes=30, offenders=(1, 2, 3, 4, 5, 6))
    harmed = measured("original", wrong=range(6), memory=seen)
    for smallest_drop, verdict in ((0.02, GOOD), (0.005, UNKNOWN)):
        one = judged(harmed, measured("corrected"), scenario(smallest_drop=smallest_drop))
        assert one.verdict is verdict
        assert "points" in one.reason
        assert one.measurement.memory.writes == 30


@pytest.mark.parametrize("reference", [True, False])
def test_an_unused_last_slot_proves_nothing(measured: Make, reference: bool) -> None:
    """Whatever the score: even a drop is not put down to a slot nobody used."""
    one = judged(
        measured("s", 40, wrong=range(20), last_slot_used=False),
        None if reference else measured("corrected", 40),
        None,
        128,
    )
    assert one.verdict is UNKNOWN
    assert one.questions_needed == 128
    assert "nothing proven" in one.reason
    assert "64" in one.reason
    assert "128 questions" in one.reason


def test_a_last_slot_that_no_number_of_questions_reaches(measured: Make) -> None:
    one = judged(measured("s", 40, last_slot_used=False), measured("corrected", 40), None, None)
    assert (one.verdict, one.questions_needed) == (UNKNOWN, None)
    assert "None" not in one.reason


@pytest.mark.parametrize("fell", [True, False])
def test_the_reference_is_judged_by_its_baseline(measured: Make, fell: bool) -> None:
    note = "below its baseline" if fell else "in line with its baseline"
    one = judged(measured("corrected"), None, None, 128, BaselineComparison(note, fell))
    assert one.verdict is (BAD if fell else GOOD)
    assert one.baseline_note == note
    assert one.comparison is None


def test_without_a_measured_reference_nothing_is_compared(measured: Make) -> None:
    one = judged(measured("original", wrong=range(600)), measured("corrected", ended=Ended.INFRA))
    assert one.verdict is UNKNOWN
    assert "corrected" in one.reason


@pytest.mark.parametrize(
    ("ended", "symptom", "verdict"),
    [
        (Ended.CRASHED, Symptom.ACCURACY, UNTESTABLE),
        (Ended.CRASHED, Symptom.ACCEPT_LENGTH, UNTESTABLE),
        (Ended.CRASHED, Symptom.CRASH, BAD),
        (Ended.STOPPED, Symptom.ACCURACY, BAD),
        (Ended.PARTIAL, Symptom.CRASH, UNKNOWN),
        (Ended.INFRA, Symptom.CRASH, UNTESTABLE),
        (Ended.BUILD_FAILED, Symptom.CRASH, UNTESTABLE),
        (Ended.TIMED_OUT, Symptom.CRASH, UNTESTABLE),
        (Ended.NOT_APPLICABLE, Symptom.CRASH, UNTESTABLE),
    ],
)
def test_only_an_ending_that_is_the_symptom_is_bad(
    measured: Make, ended: Ended, symptom: Symptom, verdict: Verdict
) -> None:
    one = judged(
        measured("original", 10, ended=ended, detail="the very reason", last_slot_used=False),
        measured("corrected", 10),
        scenario(symptom),
    )
    assert one.verdict is verdict
    assert "the very reason" in one.reason


def test_the_exit_codes_are_the_documented_ones() -> None:
    codes = {verdict: verdict.exit_code for verdict in RunVerdict}
    assert codes == {
        RunVerdict.AS_EXPECTED: 0,
        RunVerdict.REGRESSION: 1,
        RunVerdict.INFRASTRUCTURE: 3,
        RunVerdict.INCONCLUSIVE: 4,
        RunVerdict.INTERRUPTED: 130,
    }


@pytest.mark.parametrize(
    ("verdict", "expect", "code"),
    [
        (GOOD, Expectation.GOOD, 0),
        (BAD, Expectation.BAD, 0),
        (GOOD, None, 0),
        (BAD, Expectation.GOOD, 1),
        (GOOD, Expectation.BAD, 1),
        (BAD, None, 1),
        *[
            (undecided, expect, 4)
            for undecided in (UNKNOWN, UNTESTABLE)
            for expect in (Expectation.GOOD, Expectation.BAD, None)
        ],
    ],
)
def test_the_exit_code_of_one_subject(
    measured: Make, verdict: Verdict, expect: Expectation | None, code: int
) -> None:
    reference = verdict_of(measured, GOOD, Expectation.GOOD)
    one = verdict_of(measured, verdict, expect)
    for verdicts in ([reference, one], [one, reference], [reference, one, reference]):
        assert judge_run(verdicts).exit_code == code
    assert one.as_expected == (None if code == 4 or expect is None else code == 0)


def test_a_regression_outweighs_an_undecided_subject(measured: Make) -> None:
    undecided, regressed = (
        verdict_of(measured, UNKNOWN, None),
        verdict_of(measured, BAD, None),
    )
    assert judge_run([undecided, regressed]).exit_code == 1
    assert judge_run([regressed, undecided]).exit_code == 1


def test_the_run_from_measurements_to_exit_code(measured: Make) -> None:
    """The whole table: how a subject ended, what was expected of it, and the exit code."""
    fallen = measured("original", wrong=range(300, 400))
    table = [
        (fallen, scenario(original=Expectation.BAD), 0),
        (fallen, scenario(original=Expectation.GOOD), 1),
        (fallen, scenario(), 1),
        (measured("original"), scenario(original=Expectation.BAD), 1),
        (measured("original"), scenario(), 0),
        (measured("original", last_slot_used=False), scenario(original=Expectation.BAD), 4),
        (measured("original", ended=Ended.PARTIAL), scenario(original=Expectation.BAD), 130),
        (measured("original", ended=Ended.INFRA), scenario(original=Expectation.BAD), 3),
        (measured("original", ended=Ended.NOT_APPLICABLE), scenario(), 4),
        (measured("original", ended=Ended.BUILD_FAILED), scenario(), 4),
        (measured("original", ended=Ended.CRASHED), scenario(original=Expectation.BAD), 4),
        (measured("original", ended=Ended.CRASHED), scenario(Symptom.CRASH), 1),
        (
            measured("original", ended=Ended.CRASHED),
            scenario(Symptom.CRASH, original=Expectation.BAD),
            0,
        ),
        (measured("original", ended=Ended.STOPPED), scenario(original=Expectation.BAD), 0),
        (measured("original", ended=Ended.STOPPED), scenario(), 1),
    ]
    reference = measured("corrected")
    for measurement, of, code in table:
        verdicts = [judged(reference, None, of), judged(measurement, reference, of)]
        assert judge_run(verdicts).exit_code == code, (measurement.ended, of.subjects, of.symptom)


def test_a_reference_that_fell_is_a_regression_of_its_own(measured: Make) -> None:
    of = scenario(corrected=Expectation.GOOD)
    fell = judged(measured("corrected"), None, of, 128, BaselineComparison("below", fell=True))
    assert judge_run([fell]).exit_code == 1
