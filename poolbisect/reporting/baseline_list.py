"""What `baseline list` prints: every baseline with its gate's health and its last change."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from poolbisect.baselines import Baseline
from poolbisect.evidence.gate_health import GateHealth

SCHEMA = "poolbisect.baselines/1"


def show_baselines(recorded: dict[str, list[Baseline]], console: Console) -> None:
    """Print the baselines of each scenario: score, what its spread is, gate, last change."""
    for scenario, baselines in recorded.items():
        console.print(Text(scenario, style="bold"))
        if not baselines:
            console.print(Text("  none is recorded"))
        for baseline in baselines:
            runs = f", {baseline.runs} runs" if baseline.runs else ""
            console.print(
                Text(
                    f"  {baseline.name}: {baseline.mean:.4f} ± {baseline.spread:.4f} "
                    f"({baseline.spread_kind}{runs}), {baseline.n} questions of {baseline.task}, "
                    f"{baseline.shots} shots, {baseline.hardware}"
                )
            )
            health = baseline.health()
            if health is not None:
                style = "yellow" if health.faults else ""
                words = f"    gate {baseline.gate}: {health_words(health)}"
                console.print(Text(words, style=style))
            for change in baseline.changes[-1:]:
                console.print(Text(f"    {change.date}: {change.reason}", style="dim"))


def health_words(health: GateHealth | None) -> str:
    """A gate's faults in words, with the rate and a gate that would hold."""
    if health is None:
        return "-"
    if not health.faults:
        return "sound"
    faults = ", ".join(fault.value for fault in health.faults)
    return f"{faults}: {health.false_fail_rate:.1%} false fails; {health.suggested} would hold"


def baseline_document(recorded: dict[str, list[Baseline]], problems: list[str]) -> dict[str, Any]:
    """The baselines as one JSON-ready object."""
    return {
        "schema": SCHEMA,
        "baselines": [
            {
                "scenario": scenario,
                **msgspec.to_builtins(baseline),
                "gate-health": _health(baseline.health()),
            }
            for scenario, baselines in recorded.items()
            for baseline in baselines
        ],
        "problems": problems,
    }


def _health(health: GateHealth | None) -> dict[str, Any] | None:
    if health is None:
        return None
    return {
        "faults": [fault.value for fault in health.faults],
        "false-fail-rate": health.false_fail_rate,
        "miss-rate": health.miss_rate,
        "suggested": dataclasses.asdict(health.suggested),
    }
