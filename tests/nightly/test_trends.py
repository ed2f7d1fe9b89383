"""What is told without being red: drift, and gates that are of no use."""

from __future__ import annotations

import msgspec
import pytest

from poolbisect.baselines import Baseline, Gate
from poolbisect.evidence.verdict import Verdict
from poolbisect.nightly.judging import Judged
from poolbisect.nightly.past import trend
from poolbisect.nightly.trends import drift_text, gate_text, gate_texts, recorded_gate_texts

from .conftest import MakeTonight
from .pasts import night

DRIFT = (0.896, 0.894, 0.893, 0.890, 0.889, 0.886, 0.885, 0.882, 0.881, 0.878, 0.877, 0.874)


def gated(
    baseline: Baseline, mean: float, sd: float, gate: float, strict: bool = False
) -> Baseline:
    return msgspec.structs.replace(
        baseline, mean=mean, spread=sd, runs=None, gate=Gate(score=gate, strict=strict)
    )


def test_b10_a_drift_is_told_though_no_night_was_red(tonight: MakeTonight) -> None:
    past = tuple(night(n, accuracy=score) for n, score in enumerate(DRIFT))
    judged = Judged(tonight(past=past), Verdict.GOOD, "")
    text = drift_text(judged, trend(past, None))
    assert text is not None
    assert text.startswith("mimo-canary (under test): drift")


def test_a_steady_series_and_a_drop_that_is_red_anyway_are_not_told_twice(
    tonight: MakeTonight,
) -> None:
    steady = tuple(night(n) for n in range(5))
    assert drift_text(Judged(tonight(past=steady), Verdict.GOOD, ""), trend(steady, None)) is None
    step = tuple(night(n, accuracy=0.78 if n < 20 else 0.6 + n / 1e6) for n in range(25))
    series = trend(step, None)
    assert drift_text(Judged(tonight(past=step), Verdict.BAD, ""), series) is None
    told = drift_text(Judged(tonight(past=step), Verdict.GOOD, ""), series)
    assert told is not None
    assert "step" in told


def test_a_baseline_that_is_rounded_makes_no_step(
    tonight: MakeTonight, miniature_baseline: Baseline
) -> None:
    exact = tuple(night(n, accuracy=1028 / 1319) for n in range(4))
    judged = Judged(tonight(past=exact), Verdict.GOOD, "")
    assert drift_text(judged, trend(exact, miniature_baseline.recorded)) is None
    lower = tuple(night(n, accuracy=1026 / 1319) for n in range(4))
    assert "step" in str(drift_text(judged, trend(lower, miniature_baseline.recorded)))


@pytest.mark.parametrize(
    ("mean", "sd", "gate", "strict", "words"),
    [
        (0.860, 0.009, 0.85, True, "is noisy"),
        (0.855, 0.001, 0.86, False, "always fails"),
        (0.584, 0.01, 0.38, False, "never fails"),
    ],
    ids=["B6", "B8 always", "B8 never"],
)
def test_b6_b8_gates_that_are_no_use_are_told_with_one_that_would_hold(
    miniature_baseline: Baseline, mean: float, sd: float, gate: float, strict: bool, words: str
) -> None:
    (text,) = recorded_gate_texts("s", [gated(miniature_baseline, mean, sd, gate, strict)])
    assert words in text
    assert "would hold" in text
    assert recorded_gate_texts("s", [gated(miniature_baseline, 0.86, 0.001, 0.85)]) == []


def test_b6_a_gate_is_judged_by_the_good_nights_as_well(
    tonight: MakeTonight, miniature_baseline: Baseline
) -> None:
    baseline = gated(miniature_baseline, 0.86, 0.001, 0.85)
    scores = [0.86 + (n % 7 - 3) * 0.004 for n in range(61)]
    past = tuple(night(n, accuracy=score) for n, score in enumerate(scores))
    judged = Judged(tonight(past=past, baseline=baseline), Verdict.GOOD, "")
    (text,) = gate_texts(judged, past)
    assert "61 good nights" in text
    failed = sum(score < 0.85 for score in scores)
    assert f"{failed} of 61 did" in text
    # A bad night says nothing of a gate's health.
    bad = tuple(night(n, "bad", accuracy=score) for n, score in enumerate(scores))
    assert gate_texts(judged, bad) == []


def test_a_score_says_how_it_stands_to_its_gate(
    tonight: MakeTonight, miniature_baseline: Baseline
) -> None:
    passing = gated(miniature_baseline, 0.9, 0.01, 0.5)
    assert gate_text(Judged(tonight(baseline=passing), Verdict.GOOD, "")) == "passes >= 0.5"
    failing = gated(miniature_baseline, 0.9, 0.01, 0.9)
    low = tonight(range(500), baseline=failing)
    assert gate_text(Judged(low, Verdict.GOOD, "")) == "fails >= 0.9"
    assert gate_text(Judged(tonight(), Verdict.GOOD, "")) is None
