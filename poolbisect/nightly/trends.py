"""Worth knowing without being red: drift and its kin, and gates that are of no use. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.baselines import Baseline
from poolbisect.evidence.findings import SeriesFinding, SeriesKind
from poolbisect.evidence.gate_health import GateFault, GateHealth, gate_health_of
from poolbisect.evidence.verdict import Verdict
from poolbisect.nightly.judging import Judged
from poolbisect.nightly.past import GOOD, PastNight

_NIGHTS_FOR_HEALTH = 8
_FAULTS = {
    GateFault.NOISY: "is noisy",
    GateFault.ALWAYS_FAILS: "always fails",
    GateFault.NEVER_FAILS: "never fails, even ten points lower",
}


def drift_text(judged: Judged, series: SeriesFinding | None) -> str | None:
    """The series in words, None for a steady one, or a step that tonight's tests report anyway."""
    if series is None or series.kind is SeriesKind.STEADY:
        return None
    if series.kind is SeriesKind.STEP:
        change = series.transitions[-1].change if series.transitions else 0.0
        # A recorded mean is rounded: less than half a question is no step.
        fell = -change * judged.tonight.measurement.asked >= 0.5
        if not fell or judged.verdict is Verdict.BAD:
            return None
    return f"{judged.key}: {series.kind.value}: {series.summary}"


def recorded_gate_texts(scenario: str, recorded: Sequence[Baseline]) -> list[str]:
    """Gates that are of no use, judged by the mean and spread recorded with them."""
    return [
        f"{scenario}: {text}"
        for baseline in recorded
        if (text := _health(baseline, baseline.health(), "its recorded spread")) is not None
    ]


def gate_texts(judged: Judged, past: Sequence[PastNight]) -> list[str]:
    """The gate of a series' baseline, judged by its good nights once there are enough."""
    baseline = judged.tonight.baseline
    healthy = [n.accuracy for n in past if n.state == GOOD and n.accuracy is not None]
    if baseline is None or baseline.gate is None or len(healthy) < _NIGHTS_FOR_HEALTH:
        return []
    seen = gate_health_of(healthy, baseline.gate.of_score, questions=baseline.n)
    text = _health(baseline, seen, f"{len(healthy)} good nights")
    return [] if text is None else [f"{judged.key}: {text}"]


def _health(baseline: Baseline, health: GateHealth | None, by: str) -> str | None:
    if health is None or not health.faults:
        return None
    faults = " and ".join(_FAULTS[fault] for fault in health.faults)
    observed = ""
    if health.observed is not None:
        observed = f", {health.observed[0]} of {health.observed[1]} did"
    return (
        f"the gate {baseline.gate} of {baseline.name} {faults}: judged by {by}, "
        f"{health.false_fail_rate:.1%} of healthy runs fail it{observed}; "
        f"{health.suggested} would hold"
    )


def gate_text(judged: Judged) -> str | None:
    """How tonight's score stands to its gate, None without one."""
    baseline, accuracy = judged.tonight.baseline, judged.tonight.measurement.accuracy
    if baseline is None or accuracy is None:
        return None
    check = baseline.check(accuracy)
    if check is None:
        return None
    word = "passes" if check.passed else "fails"
    return f"{word} {baseline.gate}" + (f" ({check.note})" if check.note else "")
