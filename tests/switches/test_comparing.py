"""Launches judged against everything off, and against everything on."""

from __future__ import annotations

from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended
from poolbisect.switches.comparing import compared, unlike_a_score
from poolbisect.switches.launch import Launch, LaunchRequest
from poolbisect.switches.plan import Plan

PLAN = Plan()


def _launch(outcomes: str, **more: object) -> Launch:
    right = outcomes.count("1")
    facts = {"correct": right, "asked": right + outcomes.count("0"), "outcomes": outcomes, **more}
    return Launch(request=LaunchRequest(()), ended=Ended.MEASURED, **facts)  # type: ignore[arg-type]


OFF = [_launch("1" * 150 + "0" * 50)]
ON = [_launch("1" * 120 + "0" * 80)]


def test_a_fall_is_bad_and_counts_only_what_both_answered() -> None:
    lost = _launch("0" * 30 + "-" * 20 + "1" * 100 + "0" * 50)
    opinion = compared(OFF, [lost], PLAN)
    assert opinion.verdict is Verdict.BAD
    assert "30 lost, 0 gained" in opinion.reason


def test_too_few_questions_say_nothing_without_everything_on() -> None:
    assert compared(OFF, OFF, PLAN).verdict is Verdict.UNKNOWN


def test_with_everything_on_the_nearer_end_decides() -> None:
    same = compared(OFF, OFF, PLAN, lambda: ON)
    assert same.verdict is Verdict.GOOD
    assert "15.0 points above everything on" in same.reason
    between = _launch("1" * 142 + "0" * 58)  # 8 lost of 150: not significant, nearer to off
    assert compared(OFF, [between], PLAN, lambda: ON).verdict is Verdict.GOOD
    nearer_to_on = _launch("1" * 130 + "0" * 70)
    assert compared(OFF, [nearer_to_on], PLAN, lambda: ON).verdict is not Verdict.GOOD


def test_a_run_that_never_used_the_last_slot_is_not_good() -> None:
    unused = _launch("1" * 150 + "0" * 50, last_slot_used=False)
    opinion = compared(OFF, [unused], PLAN, lambda: ON)
    assert opinion.verdict is Verdict.UNKNOWN
    assert "last request slot" in opinion.reason


def test_repeats_pool_question_by_question() -> None:
    """Nine of ten lost once is not significant at 0.001; three times it is."""
    once = [_launch("0" * 9 + "1" * 141 + "0" * 50)]
    assert compared(OFF, once, PLAN).verdict is not Verdict.BAD
    assert compared(OFF * 3, once * 3, PLAN).verdict is Verdict.BAD


def test_counts_alone_are_compared_unpaired() -> None:
    off, on = (
        Launch(request=LaunchRequest(()), ended=Ended.MEASURED, correct=correct, asked=1000)
        for correct in (780, 700)
    )
    assert compared([off], [on], PLAN).verdict is Verdict.BAD
    assert compared([off], [off], PLAN, lambda: [on]).verdict is Verdict.GOOD


def test_only_a_measurement_can_be_judged() -> None:
    for ended in (Ended.CRASHED, Ended.TIMED_OUT, Ended.BUILD_FAILED, Ended.NOT_APPLICABLE):
        opinion = unlike_a_score(Launch(request=LaunchRequest(()), ended=ended, detail="why"))
        assert opinion is not None
        assert opinion.verdict is Verdict.UNTESTABLE
        assert opinion.reason == "why"
