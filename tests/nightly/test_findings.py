"""Findings of a night: new, persistent, fixed, and what they say of the cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.evidence.findings import SeriesKind
from poolbisect.evidence.verdict import Verdict
from poolbisect.nightly.comparisons import Rules
from poolbisect.nightly.findings import (
    Finding,
    FindingState,
    NightVerdict,
    finding,
    night_verdict,
    why_no_search,
)
from poolbisect.nightly.judging import Judged, judge_night
from poolbisect.nightly.past import PastNight, trend
from poolbisect.nightly.series import SeriesKey, Tonight

from .conftest import MakeTonight
from .pasts import night, nights

NEW, PERSISTENT, FIXED = FindingState.NEW, FindingState.PERSISTENT, FindingState.FIXED
NOW = "2026-06-01T03:00:00.000+00:00"
VERDICTS = {"g": Verdict.GOOD, "b": Verdict.BAD, "u": Verdict.UNKNOWN, "x": Verdict.UNTESTABLE}


def found(tonight: Tonight, as_night: PastNight | None = None) -> Finding | None:
    judged = judge_night([tonight], Rules()).series[0]
    return finding(judged, NOW, as_night or night(31, judged.verdict.value))


@given(past=st.text(alphabet="gbux", max_size=10), state=st.sampled_from("gbux"))
def test_every_history_sorts_as_the_rule_says(tonight: MakeTonight, past: str, state: str) -> None:
    judged = Judged(tonight(past=nights(past)), VERDICTS[state], "because")
    one = finding(judged, NOW, night(31))
    is_open = "b" in past[past.rfind("g") + 1 :]
    expected = {
        ("b", False): NEW,
        ("b", True): PERSISTENT,
        ("g", True): FIXED,
        ("u", True): PERSISTENT,
        ("x", True): PERSISTENT,
    }.get((state, is_open))
    assert (one.state if one else None) == expected
    if one is None:
        return
    if one.state is NEW:
        assert one.since == NOW
    else:
        first = past.index("b", past.rfind("g") + 1)
        assert one.since == nights(past)[first].started
    assert one.last_good == (nights(past)[past.rfind("g")].started if "g" in past else None)


def test_four_nights_are_new_persistent_and_fixed(tonight: MakeTonight) -> None:
    fall = {"before": range(295), "wrong": range(369), "subject": "original"}
    new = found(tonight(past=nights("g"), **fall))
    assert new is not None
    assert (new.state, new.lost, new.gained) == (NEW, 74, 0)
    assert "original in place of corrected" in new.text
    again = found(tonight(past=(night(0), night(1, "bad", 0.72, subject="original")), **fall))
    assert again is not None
    assert (again.state, again.nights) == (PERSISTENT, 2)
    assert again.since.startswith("2026-05-02")
    bad = [night(n, "bad", 0.72, subject="original", loss=0.056) for n in (1, 2)]
    fixed = found(tonight(range(295), past=(night(0), *bad), before=range(295)))
    assert fixed is not None
    assert (fixed.state, fixed.nights, fixed.loss) == (FIXED, 2, 0.056)
    assert "corrected in place of original" in fixed.text


def test_undecided_nights_before_it_make_the_start_uncertain_and_that_is_said(
    tonight: MakeTonight,
) -> None:
    fall = {"before": range(0), "wrong": range(100)}
    new = found(tonight(past=nights("guu"), **fall))
    assert new is not None
    assert "it may be older" in new.text
    later = found(tonight(past=nights("guub"), **fall))
    assert later is not None
    assert "or on one of 2 nights before that could not say" in later.text


def test_a_new_finding_names_what_changed_and_blames_no_code_that_did_not(
    tonight: MakeTonight,
) -> None:
    facts = {"revision": "commit:abc", "runner": "a"}
    good = night(0, dependencies={"torch": "2.9.0"}, **facts)
    bad = night(31, "bad", 0.7, dependencies={"torch": "2.9.1"}, **facts)
    fell = tonight(range(100), past=(good,), before=range(0))
    new = found(fell, bad)
    assert new is not None
    assert "the code is that of the last good night; changed: torch 2.9.0 → 2.9.1" in new.text
    assert why_no_search(new, None) == "no culprit is looked for: the code did not change"
    other = found(fell, night(31, "bad", 0.7, revision="commit:def", runner="b"))
    assert other is not None
    assert "runner a → b" in other.text
    assert why_no_search(other, None) is None


def test_b11_a_score_that_follows_the_runner_names_no_culprit(tonight: MakeTonight) -> None:
    scores = zip((0.895, 0.900, 0.630, 0.605, 0.89, 0.885, 0.61), "aabbaab", strict=True)
    series = trend([night(n, accuracy=s, runner=r) for n, (s, r) in enumerate(scores)], None)
    assert series is not None
    assert series.kind is SeriesKind.TWO_VALUED
    new = found(tonight(range(100), past=nights("g"), before=range(0)))
    assert new is not None
    assert "follows the runner" in str(why_no_search(new, series))


def one_of(state: FindingState) -> Finding:
    return Finding(state, SeriesKey("s", "w", "r"), "corrected", "", 0.05, 1e-6, NOW)


@pytest.mark.parametrize(
    ("states", "findings", "expected"),
    [
        ("gg", [], NightVerdict.NO_REGRESSION),
        ("gg", [FIXED], NightVerdict.NO_REGRESSION),
        ("gb", [NEW], NightVerdict.REGRESSION),
        ("gb", [PERSISTENT, FIXED], NightVerdict.REGRESSION),
        ("gu", [], NightVerdict.INCONCLUSIVE),
        ("gx", [FIXED], NightVerdict.INCONCLUSIVE),
        ("bu", [NEW], NightVerdict.REGRESSION),
    ],
)
def test_a_night_is_as_red_as_its_worst_part(
    states: str, findings: list[FindingState], expected: NightVerdict
) -> None:
    verdicts = [VERDICTS[state] for state in states]
    some = [one_of(state) for state in findings]
    assert night_verdict(verdicts, some, measured=True, failed=False) is expected


def test_a_failed_part_is_inconclusive_and_nothing_measured_is_infrastructure() -> None:
    good = [Verdict.GOOD]
    assert night_verdict(good, [], measured=True, failed=True) is NightVerdict.INCONCLUSIVE
    assert night_verdict([], [], measured=False, failed=True) is NightVerdict.INFRASTRUCTURE
    untestable = [Verdict.UNTESTABLE]
    assert night_verdict(untestable, [], measured=False, failed=False).exit_code == 3
    cut = night_verdict(good, [one_of(NEW)], measured=True, failed=False, interrupted=True)
    assert cut.exit_code == 130
