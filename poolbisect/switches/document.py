"""The machine-readable answer of `bisect --config`: what `--json` prints and result.json keeps.

docs/config-bisect.md describes every field.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.evidence.intervals import wilson
from poolbisect.evidence.paired import PairedComparison
from poolbisect.evidence.unpaired import UnpairedComparison
from poolbisect.switches.concurrency import ConcurrencyRow
from poolbisect.switches.finding import Answer, Confirmation
from poolbisect.switches.launch import Launch
from poolbisect.switches.referee import Decision
from poolbisect.switches.workflow import ConfigReport, LaunchRecord

SCHEMA = "poolbisect.config-bisect/1"


def config_document(
    report: ConfigReport, folder: Path, command: Sequence[str], environment: dict[str, Any]
) -> dict[str, Any]:
    """The answer as one JSON-ready object; `folder` is where its files are."""
    request, finding = report.request, report.finding
    return {
        "schema": SCHEMA,
        "verdict": finding.answer.value,
        "exit_code": report.exit_code,
        "reason": finding.reason,
        "probe": report.probe,
        "scenario": request.scenario.name if request.scenario else None,
        "symptom": request.symptom,
        "subject": request.subject,
        "reference": report.reference,
        "questions": request.questions,
        "partial": finding.answer in (Answer.INTERRUPTED, Answer.INFRASTRUCTURE),
        "started": report.started.isoformat(timespec="seconds"),
        "seconds": round(report.seconds, 3),
        "switches": [
            {
                "name": switch.name,
                "off": {setting.key: setting.off for setting in switch.settings},
                "on": {setting.key: setting.on for setting in switch.settings},
            }
            for switch in request.switches
        ],
        "culprit": list(finding.culprit) or None,
        "certain": list(finding.certain),
        "suspects": list(finding.suspects),
        "others": [list(names) for names in finding.others],
        "remarks": list(finding.remarks),
        "confirmation": _confirmation(finding.confirmation),
        "launch_count": len(report.launches),
        "launches": [_record(number, one) for number, one in enumerate(report.launches, 1)],
        "concurrency": [_row(row) for row in report.table],
        "plan": {
            "repeats": request.plan.most,
            "noise": request.plan.noise,
            "lead": request.plan.lead,
            "alpha": request.plan.alpha,
            "smallest_drop": request.plan.smallest_drop,
            "gate": request.plan.gate,
        },
        "command": list(command),
        "environment": environment,
        "report": str(folder),
    }


def encode(document: dict[str, Any]) -> bytes:
    """JSON for people and programs alike: indented, keys in the order given."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _confirmation(confirmation: Confirmation | None) -> dict[str, Any] | None:
    if confirmation is None:
        return None
    return {
        "again": _decision(confirmation.again),
        "without": {name: _decision(one) for name, one in confirmation.without.items()},
        "others_on": {name: _decision(one) for name, one in confirmation.others_on.items()},
        "reference": _decision(confirmation.reference) if confirmation.reference else None,
    }


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "on": sorted(decision.on),
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "launches": len(decision.launches),
    }


def _record(number: int, record: LaunchRecord) -> dict[str, Any]:
    launch, decision = record.launch, record.decision
    return {
        "number": number,
        "role": launch.request.role.value,
        "on": list(launch.request.on),
        "reason": record.reason,
        "verdict": decision.verdict.value if decision else None,
        "explanation": decision.reason if decision else None,
        **_scores(launch),
        "comparison": _comparison(decision),
    }


def _scores(launch: Launch) -> dict[str, Any]:
    interval = wilson(launch.correct, launch.asked) if launch.accuracy is not None else None
    return {
        "ended": launch.ended.value,
        "detail": launch.detail,
        "correct": launch.correct,
        "asked": launch.asked,
        "accuracy": launch.accuracy,
        "interval": [interval.low, interval.high] if interval else None,
        "accept_length": launch.accept_length,
        "out_of_range_reads": launch.reads,
        "out_of_range_writes": launch.writes,
        "overwritten_requests": launch.overwritten,
        "last_slot": launch.last_slot,
        "last_slot_used": launch.last_slot_used,
        "requests_on_last_slot": launch.requests_on_last_slot,
        "seconds": launch.seconds,
        "log": launch.log,
    }


def _comparison(decision: Decision | None) -> dict[str, Any] | None:
    comparison: PairedComparison | UnpairedComparison | None
    comparison = decision.opinion.comparison if decision else None
    if comparison is None:
        return None
    paired = isinstance(comparison, PairedComparison)
    return {
        "paired": paired,
        "lost": comparison.lost if isinstance(comparison, PairedComparison) else None,
        "gained": comparison.gained if isinstance(comparison, PairedComparison) else None,
        "difference": comparison.difference,
        "p_value": comparison.p_value,
    }


def _row(row: ConcurrencyRow) -> dict[str, Any]:
    return {
        "concurrency": row.concurrency,
        "verdict": row.decision.verdict.value,
        "explanation": row.decision.reason,
        **_scores(row.decision.launches[0]),
        "comparison": _comparison(row.decision),
    }
