"""The machine-readable result of a run: what `--json` prints and `result.json` keeps.

`schema` names the version of this form; docs/result-json.md describes every field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.baselines import load_baselines, run_key
from poolbisect.canary import ContractFinding, RunReport
from poolbisect.evidence.intervals import wilson
from poolbisect.judging import SubjectVerdict
from poolbisect.measurement import Answer, Ended, Measurement, MemoryEvents
from poolbisect.own_environment import own_environment
from poolbisect.probes.contract import BufferContract
from poolbisect.reporting.attribution import attribution, workaround
from poolbisect.tasks.arithmetic import HARNESS_VERSION

SCHEMA = "poolbisect.run/1"
CONTRACT_SCHEMA = "poolbisect.contract/1"


def run_document(
    report: RunReport, folder: Path, command: Sequence[str] | None = None
) -> dict[str, Any]:
    """The run as one JSON-ready object; `folder` is where its files are, `command` what ran."""
    results = [_result(verdict, report) for verdict in report.verdicts]
    compared = [result["comparison"] for result in results if result["comparison"]]
    return {
        "schema": SCHEMA,
        "scenario": report.scenario.name,
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "partial": any(result["ended"] == "partial" for result in results),
        "report": str(folder),
        "started": report.started.isoformat(timespec="seconds"),
        "seconds": round(report.seconds, 3),
        "questions": report.questions,
        "reference": report.scenario.judging.reference,
        "results": results,
        "comparison": compared[0] if compared else None,
        "command": list(command or ()),
        "environment": own_environment(),
        "configuration": {
            "engine": msgspec.to_builtins(report.scenario.engine),
            "memory": msgspec.to_builtins(report.scenario.memory),
            "workload": msgspec.to_builtins(report.scenario.workload),
            "judging": msgspec.to_builtins(report.scenario.judging),
        },
    }


def contract_document(scenario: str, findings: Sequence[ContractFinding]) -> dict[str, Any]:
    """The contract probe's findings as one JSON-ready object."""
    return {
        "schema": CONTRACT_SCHEMA,
        "scenario": scenario,
        "exit_code": contract_exit_code(findings),
        "results": [
            {
                "subject": finding.subject,
                "ended": finding.ended.value,
                "detail": finding.detail,
                "short": finding.short,
                "contract": [_contract(one) for one in finding.contracts],
            }
            for finding in findings
        ],
    }


def contract_exit_code(findings: Sequence[ContractFinding]) -> int:
    """1 if a buffer is short, else 4 if a subject could not be asked, else 0."""
    if any(finding.short for finding in findings):
        return 1
    return 4 if any(finding.ended is not Ended.MEASURED for finding in findings) else 0


def _contract(one: BufferContract) -> dict[str, Any]:
    return {
        "buffer": one.buffer,
        "space": one.space,
        "rows": one.rows,
        "last_index": one.last,
        "missing_rows": one.missing,
        "short_from": one.short_from,
    }


def encode(document: dict[str, Any]) -> bytes:
    """JSON for people and programs alike: indented, keys in the order given."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def save(report: RunReport, folder: Path, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Write result.json and one JSONL of answers per subject into `folder`; the document."""
    for verdict in report.verdicts:
        measurement = verdict.measurement
        if measurement.answers:
            name = measurement.subject.replace(":", "-").replace("/", "-")
            path = folder / f"{name}.jsonl"
            path.write_bytes(msgspec.json.Encoder().encode_lines(map(_line, measurement.answers)))
    document = run_document(report, folder, command)
    (folder / "result.json").write_bytes(encode(document) + b"\n")
    return document


def _line(answer: Answer) -> dict[str, Any]:
    fields = dataclasses.asdict(answer)
    return {"id": fields.pop("id"), "correct": answer.outcome.value == "right", **fields}


def _result(verdict: SubjectVerdict, report: RunReport) -> dict[str, Any]:
    measurement = verdict.measurement
    slots = measurement.slots
    return {
        "subject": measurement.subject,
        "ended": measurement.ended.value,
        "detail": measurement.detail,
        "asked": measurement.asked,
        "answered": measurement.answered,
        "correct": measurement.correct,
        "invalid": measurement.invalid,
        "accuracy": measurement.accuracy,
        "interval": _interval(measurement),
        "accept_length": measurement.accept_length,
        "last_slot": slots.last_slot if slots else None,
        "last_slot_used": slots.last_slot_used if slots else None,
        "requests_on_last_slot": slots.requests_on_last_slot if slots else None,
        "slot_coverage": slots.coverage if slots else None,
        "seconds": round(measurement.seconds, 3),
        "tokens": measurement.tokens,
        "tokens_per_second": round(measurement.tokens_per_second, 1),
        "verdict": verdict.verdict.value,
        "reason": verdict.reason,
        "expected": verdict.expectation.value if verdict.expectation else None,
        "as_expected": verdict.as_expected,
        "questions_needed": verdict.questions_needed,
        "baseline": verdict.baseline_note or None,
        "baseline_score": _baseline_score(verdict, report),
        "out_of_range": _out_of_range(measurement.memory),
        "comparison": _comparison(verdict),
        "contract": [_contract(one) for one in report.contracts.get(measurement.subject, ())],
        "attribution": attribution(verdict),
        "workaround": workaround(report.contracts.get(measurement.subject, ()), report.scenario),
        "provenance": {"harness_version": HARNESS_VERSION, **measurement.provenance},
    }


def _interval(measurement: Measurement) -> list[float] | None:
    if not measurement.answered:
        return None
    interval = wilson(measurement.correct, measurement.answered)
    return [interval.low, interval.high]


def _baseline_score(verdict: SubjectVerdict, report: RunReport) -> dict[str, Any] | None:
    """The recorded baseline with the same key as the reference's measurement, for its band."""
    device = verdict.measurement.provenance.get("device")
    if not verdict.baseline_note or not isinstance(device, str):
        return None
    key = run_key(report.scenario, report.questions, device)
    for baseline in load_baselines(report.scenario.name):
        if baseline.key == key:
            gate = baseline.gate
            return {
                "name": baseline.name,
                "mean": baseline.mean,
                "spread": baseline.spread,
                "spread_kind": baseline.spread_kind.value,
                "gate": None if gate is None else gate.score,
                "gate_strict": gate is not None and gate.strict,
            }
    return None


def _out_of_range(memory: MemoryEvents) -> dict[str, Any]:
    return {
        "watched": memory.watched,
        "reads": memory.reads,
        "writes": memory.writes,
        "buffers": [dataclasses.asdict(buffer) for buffer in memory.buffers],
        "first": memory.first,
        "offenders": list(memory.offenders),
        "victims": list(memory.victims),
        "padded_writes": memory.padded_writes,
        "padded_targets": list(memory.padded_targets),
        "non_finite_padding": list(memory.non_finite_padding),
        "arena": [dataclasses.asdict(placed) for placed in memory.arena],
    }


def _comparison(verdict: SubjectVerdict) -> dict[str, Any] | None:
    paired = verdict.comparison
    if paired is None:
        return None
    interval = paired.interval
    return {
        "paired": True,
        "n": paired.n,
        "lost": paired.lost,
        "gained": paired.gained,
        "difference": paired.difference,
        "interval": [interval.low, interval.high],
        "p_value": paired.p_value,
        "lost_ids": list(paired.lost_ids),
        "gained_ids": list(paired.gained_ids),
    }
