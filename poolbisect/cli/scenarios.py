"""`poolbisect scenarios`: list them, or show one."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from poolbisect.baselines import load_baselines
from poolbisect.scenario import Scenario, load_scenario, scenario_names, server_scenario_names


@click.command(name="scenarios")
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List the scenarios, or show NAME: what it stands for, its server flags and baselines."""
    console = Console(markup=False)
    if name is None:
        table = Table("scenario", "symptom", "title", header_style="bold")
        for known in (*scenario_names(), *server_scenario_names()):
            scenario = load_scenario(known)
            table.add_row(*map(Text, (scenario.name, scenario.symptom.value, scenario.title)))
        console.print(table)
    else:
        _show(load_scenario(name), console)
    return 0


def _show(scenario: Scenario, console: Console) -> None:
    console.print(Text.assemble((scenario.name, "bold"), f": {scenario.title}\n"))
    console.print(" ".join(scenario.stands_for.split()), highlight=False)
    console.print(f"\nSymptom: {scenario.symptom.value}; buffers: {', '.join(scenario.buffers)}")
    workload = scenario.workload
    console.print(
        f"Workload: {workload.questions} problems of {workload.task}, {workload.shots} shots, "
        f"model {workload.model}, up to {workload.max_new_tokens} new tokens, "
        f"temperature {workload.temperature:g}",
        highlight=False,
    )
    console.print(f"Server flags: {_flags(scenario)}", highlight=False)
    if scenario.server is None:
        console.print(
            f"Padded rows: {scenario.memory.padded_rows}; behind the hidden-states pool: "
            f"{scenario.memory.behind_hidden_states}",
            highlight=False,
        )
    else:
        console.print("Served by the real SGLang only: --probe server", highlight=False)
    expected = ", ".join(f"{s.name} {s.expect.value}" for s in scenario.subjects)
    console.print(
        f"Expected: {expected}; reference {scenario.judging.reference}, significance "
        f"{scenario.judging.alpha:g}, smallest drop of interest {scenario.judging.smallest_drop:g}",
        highlight=False,
    )
    table = Table(
        "baseline", "score", "± is", "gate", "n", "hardware", "source", header_style="bold"
    )
    for baseline in load_baselines(scenario.name):
        gate = baseline.gate
        sign = ">" if gate and gate.strict else "≥"
        cells = (
            baseline.name,
            f"{baseline.mean:.3f} ± {baseline.spread:.4f}",
            baseline.spread_kind,
            f"{sign} {gate.score}" if gate else "-",
            str(baseline.n),
            baseline.hardware,
            baseline.source,
        )
        table.add_row(*map(Text, cells))
    console.print(table)


def _flags(scenario: Scenario) -> str:
    if scenario.server is not None:
        return " ".join(scenario.server.flags)
    shown = []
    for field in scenario.engine.__struct_fields__:
        if field.startswith("speculative_") and scenario.engine.speculative_algorithm is None:
            continue
        value = getattr(scenario.engine, field)
        flag = "--" + field.replace("_", "-")
        if value is True:
            shown.append(flag)
        elif value is not False and value is not None:
            shown.append(f"{flag} {value}")
    return " ".join(shown)
