"""A night as one JSON-ready object, and its file, which is whole at any moment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.evidence.findings import SeriesFinding
from poolbisect.evidence.intervals import wilson
from poolbisect.nightly.findings import Finding, NightVerdict
from poolbisect.nightly.judging import METHOD, JointNight, Judged
from poolbisect.nightly.past import standing
from poolbisect.nightly.subjects import Failure
from poolbisect.nightly.trends import gate_text
from poolbisect.store.nights import SCHEMA

RESULT = "result.json"
_WHOLE_NIGHT = "night"


@dataclass(frozen=True, slots=True)
class NightReport:
    """A night, finished or not.

    `started` is UTC; `trends` is what each series does, by its place in `joint.series`.
    """

    id: str
    folder: Path
    started: datetime
    seconds: float
    verdict: NightVerdict
    partial: bool
    joint: JointNight
    command: tuple[str, ...]
    environment: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    drift: tuple[str, ...] = ()
    gate_health: tuple[str, ...] = ()
    trends: Mapping[int, SeriesFinding] = field(default_factory=dict)
    window: int = 7

    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code


def iso(moment: datetime) -> str:
    """Milliseconds, so that two nights of one second keep their order."""
    return moment.isoformat(timespec="milliseconds")


def night_id(folder: Path, started: datetime) -> str:
    """Unique among the nights of several output folders that share a database."""
    text = f"{folder.name} {started.isoformat()}"
    return f"{folder.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def night_document(report: NightReport) -> dict[str, Any]:
    """The night for programs; docs/nightly.md describes every field."""
    return {
        "schema": SCHEMA,
        "id": report.id,
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "partial": report.partial,
        "started": iso(report.started),
        "seconds": round(report.seconds, 3),
        "findings": [_finding(one) for one in report.findings],
        "rows": [
            _row(one, report, report.trends.get(number))
            for number, one in enumerate(report.joint.series)
        ],
        "drift": list(report.drift),
        "gate_health": list(report.gate_health),
        "failures": [
            {"scenario": one.scenario or _WHOLE_NIGHT, "text": one.text} for one in report.failures
        ],
        "joint": {
            "method": METHOD,
            "alpha": report.joint.alpha,
            "tests": report.joint.tests,
            "text": report.joint.text,
        },
        "command": list(report.command),
        "environment": dict(report.environment),
        "report": str(report.folder),
    }


def encode(document: dict[str, Any]) -> bytes:
    """Indented JSON, keys in the order given."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def write(document: dict[str, Any], folder: Path) -> None:
    """Put the document in place in one step: whoever reads it sees a whole one."""
    scratch = folder / f".{RESULT}.new"
    scratch.write_bytes(encode(document) + b"\n")
    os.replace(scratch, folder / RESULT)


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "state": one.state.value,
        "scenario": one.key.scenario,
        "role": one.key.role,
        "subject": one.subject,
        "text": one.text,
        "drop": one.loss,
        "p_value": one.p_value,
        "adjusted_p_value": one.adjusted,
        "since": one.since,
        "nights": one.nights,
        "last_good": one.last_good,
        "lost": one.lost,
        "gained": one.gained,
        "culprit": one.culprit,
    }


def _row(judged: Judged, report: NightReport, trend: SeriesFinding | None) -> dict[str, Any]:
    tonight, measurement = judged.tonight, judged.tonight.measurement
    before = standing(tonight.past, report.window)
    baseline, accuracy = tonight.baseline, measurement.accuracy if tonight.measured else None
    interval = wilson(measurement.correct, measurement.answered) if accuracy is not None else None
    return {
        "scenario": judged.key.scenario,
        "role": judged.key.role,
        "subject": tonight.subject,
        "revision": tonight.revision,
        "workload": judged.key.workload,
        "ended": measurement.ended.value,
        "accuracy": accuracy,
        "interval": None if interval is None else [interval.low, interval.high],
        "correct": measurement.correct,
        "answered": measurement.answered,
        "asked": measurement.asked,
        "accept_length": measurement.accept_length,
        "verdict": judged.verdict.value,
        "reason": judged.reason,
        "loss": judged.loss,
        "mean7": before.mean,
        "sd7": before.sd,
        "best": before.best,
        "best_night": before.best_night,
        "nights": before.nights,
        "trend": None if trend is None else trend.kind.value,
        "baseline": None
        if baseline is None
        else f"{baseline.mean:.3f} ± {baseline.spread:.4f} ({baseline.spread_kind})",
        "gate": gate_text(judged),
        "tests": _tests(judged),
        "out_of_range": _out_of_range(judged),
        "weights": tonight.weights,
        "run": tonight.run,
        "report": None if tonight.folder is None else relative(tonight.folder, report.folder),
    }


def _tests(judged: Judged) -> Sequence[dict[str, Any]]:
    return [
        {
            "against": test.against,
            "verdict": test.judgement.verdict.value,
            "reason": test.judgement.reason,
            "p_value": test.judgement.p_value,
            "drop": test.loss,
            "detectable": test.judgement.detectable,
            "questions_needed": test.judgement.questions_needed,
            "lost": None if test.paired is None else test.paired.lost,
            "gained": None if test.paired is None else test.paired.gained,
        }
        for test in judged.tests
    ]


def _out_of_range(judged: Judged) -> dict[str, Any] | None:
    memory = judged.tonight.measurement.memory
    if not memory.watched:
        return None
    buffers = sorted({buffer.buffer for buffer in memory.buffers})
    return {"reads": memory.reads, "writes": memory.writes, "buffers": buffers}


def relative(folder: Path, base: Path) -> str:
    """A path for links, as seen from the folder `base`."""
    return Path(os.path.relpath(folder, base)).as_posix()
