"""From what was measured to the night's report: its past, findings, trends and verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from poolbisect.baselines import load_baselines
from poolbisect.errors import PoolbisectError
from poolbisect.evidence.findings import SeriesFinding
from poolbisect.nightly.document import NightReport, iso
from poolbisect.nightly.findings import Finding, FindingState, finding, night_verdict
from poolbisect.nightly.history import dependencies, last_good_of, past_of
from poolbisect.nightly.judging import JointNight, Judged, judge_night
from poolbisect.nightly.measuring import tonight_of
from poolbisect.nightly.past import PastNight, trend
from poolbisect.nightly.request import Display
from poolbisect.nightly.running import RunningNight
from poolbisect.nightly.searching import with_cause
from poolbisect.nightly.series import Tonight
from poolbisect.nightly.subjects import NightSubject
from poolbisect.nightly.trends import drift_text, gate_texts, recorded_gate_texts


def conclude(night: RunningNight, display: Display) -> NightReport:
    """Judge what was measured against references, baselines and the past, and sort the findings.

    The culprit of a new finding is looked for here, unless the night was interrupted.
    """
    series = [
        _with_past(night, subject, tonight)
        for measured in night.measured
        for subject, tonight in tonight_of(measured)
    ]
    joint = judge_night(series, night.request.rules)
    nights = [_as_night(judged, night) for judged in joint.series]
    trends = _trends(joint, nights)
    findings: list[Finding] = []
    for number, (judged, tonight) in enumerate(zip(joint.series, nights, strict=True)):
        found = finding(judged, iso(night.started), tonight)
        if found is None:
            continue
        if found.state is FindingState.NEW and not night.interrupted:
            found = with_cause(night, found, judged, trends.get(number), display)
        findings.append(found)
    report = replace(
        night.so_far(),
        joint=joint,
        findings=tuple(findings),
        drift=tuple(
            text
            for number, judged in enumerate(joint.series)
            if (text := drift_text(judged, trends.get(number))) is not None
        ),
        gate_health=_gates(night, joint),
        trends=trends,
    )
    return with_verdict(report, night)


def with_verdict(report: NightReport, night: RunningNight) -> NightReport:
    """The report with its verdict, given the failures and the interrupt known by now."""
    verdict = night_verdict(
        (judged.verdict for judged in report.joint.series),
        report.findings,
        measured=any(judged.tonight.measured for judged in report.joint.series),
        failed=bool(night.failures),
        interrupted=night.interrupted,
    )
    return replace(
        report,
        verdict=verdict,
        failures=tuple(night.failures),
        partial=night.interrupted,
        seconds=time.perf_counter() - night.clock,
    )


def _with_past(night: RunningNight, subject: NightSubject, tonight: Tonight) -> Tonight:
    if night.history is None:
        return tonight
    try:
        past = past_of(night.history, tonight.key, subject)
        good = last_good_of(night.history, past, tonight.scenario.symptom)
    except PoolbisectError as error:
        night.fail(tonight.key.scenario, f"its past cannot be read: {error}")
        return tonight
    return replace(tonight, past=past, last_good=good)


def _as_night(judged: Judged, night: RunningNight) -> PastNight:
    """Tonight as later nights will see it."""
    tonight, measurement = judged.tonight, judged.tonight.measurement
    return PastNight(
        started=iso(night.started),
        subject=tonight.subject,
        state=judged.verdict.value,
        accuracy=measurement.accuracy if tonight.measured else None,
        correct=measurement.correct,
        answered=measurement.answered,
        loss=judged.loss,
        run=tonight.run,
        revision=tonight.revision,
        runner=night.environment.get("runner"),
        dependencies=dependencies(night.environment, tonight.weights),
    )


def _trends(joint: JointNight, nights: Sequence[PastNight]) -> dict[int, SeriesFinding]:
    found = {}
    for number, (judged, tonight) in enumerate(zip(joint.series, nights, strict=True)):
        baseline = judged.tonight.baseline
        recorded = None if baseline is None else baseline.recorded
        seen = trend([*judged.tonight.past, tonight], recorded)
        if seen is not None:
            found[number] = seen
    return found


def _gates(night: RunningNight, joint: JointNight) -> tuple[str, ...]:
    texts: list[str] = []
    for measured in night.measured:
        name = measured.scenario.name
        texts += recorded_gate_texts(name, load_baselines(name))
    for judged in joint.series:
        texts += gate_texts(judged, judged.tonight.past)
    return tuple(texts)
