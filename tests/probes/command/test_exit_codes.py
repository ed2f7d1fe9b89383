"""The contract of exit codes, over all of them."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.bisection.outcome import Ending, Verdict
from poolbisect.probes.command.exit_codes import by_exit, in_words, signal_of, without_score
from poolbisect.probes.command.process import Finished


def ended(status: int | None = None, signal: int | None = None, **more: bool) -> Finished:
    return Finished(status, signal, more.get("timed_out", False), 1.0)


@given(st.integers(0, 255))
def test_every_status_has_its_place(status: int) -> None:
    seen = by_exit(ended(status))
    if status == 0:
        assert (seen.ending, seen.verdict) == (Ending.MEASURED, Verdict.GOOD)
    elif status < 125:
        assert (seen.ending, seen.verdict) == (Ending.MEASURED, Verdict.BAD)
    else:
        ending = Ending.UNTESTABLE if status < 128 else Ending.CRASHED
        assert (seen.ending, seen.verdict) == (ending, None)
    assert str(status) in seen.note


@given(st.integers(1, 64))
def test_a_signal_is_a_crash_also_from_a_shell(number: int) -> None:
    for finished in (ended(signal=number), ended(128 + number)):
        assert signal_of(finished) == number
        assert by_exit(finished).ending is Ending.CRASHED


@given(st.integers(0, 255))
def test_where_a_crash_is_looked_for_nothing_else_is_bad(status: int) -> None:
    seen = by_exit(ended(status), crash_is_bad=True)
    assert seen.verdict is not Verdict.BAD
    outside = {128 + int(s) for s in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    if status in outside:  # whoever sent it, it was not the command
        assert seen.ending is Ending.INFRA
    elif status >= 128:
        assert seen.ending is Ending.CRASHED
    elif status in (125, 126, 127):
        assert seen.ending is Ending.UNTESTABLE
    else:
        assert seen.verdict is Verdict.GOOD


@given(st.integers(0, 255))
def test_without_the_score_that_was_asked_for_nothing_is_judged(status: int) -> None:
    seen = without_score(ended(status))
    assert seen.verdict is None
    assert seen.ending in (Ending.UNTESTABLE, Ending.CRASHED)


def test_time_and_a_lost_keeper_judge_nothing() -> None:
    assert by_exit(ended(timed_out=True)).ending is Ending.TIMED_OUT
    assert by_exit(ended()).ending is Ending.INFRA


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (ended(3), "exit status 3"),
        (ended(125), "exit status 125, which asks to be skipped"),
        (ended(139), "exit status 139, as after SIGSEGV"),
        (ended(signal=6), "ended by SIGABRT"),
        (ended(signal=9), "ended by SIGKILL, as when memory runs out"),
        (Finished(127, None, False, 0.0, failure="no such file"), "did not start (no such file)"),
        (Finished(None, None, True, 61.0), "stopped after 61 s, its time limit"),
    ],
)
def test_the_end_in_words(finished: Finished, words: str) -> None:
    assert in_words(finished) == words
