"""What `poolbisect run` does with its options."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from poolbisect.canary import RunReport, RunRequest, probe_contracts, run
from poolbisect.cli.server_options import options_from, refuse_without_server
from poolbisect.errors import PoolbisectError, UsageError
from poolbisect.memory.guard import MemoryMode
from poolbisect.probes.miniature import Settings, check_device
from poolbisect.reporting import result_json
from poolbisect.reporting.console import LiveProgress, show, show_contracts
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.folder import report_folder
from poolbisect.reporting.index import write_index
from poolbisect.scenario import load_scenario
from poolbisect.store import FILE_NAME, record_run


@dataclass(frozen=True, slots=True)
class Start:
    """The options of one `run`."""

    scenario: str
    subjects: tuple[str, ...]
    repo: Path | None
    questions: int | None
    seed: int | None
    memory: str
    probe: str
    device: str
    store: Path | None
    server: Mapping[str, Any]
    out: Path


def start(asked: Start, *, as_json: bool) -> int:
    """Run, save, show; the exit code."""
    refuse_without_server(asked.server, asked.probe)
    loaded = load_scenario(asked.scenario)
    loaded.check_probe(asked.probe)
    names = asked.subjects or [subject.name for subject in loaded.subjects]
    if asked.repo is not None and not any(name.startswith("commit:") for name in names):
        raise UsageError(
            "--repo is for subjects that are commits; name one with --subject commit:<revision>, "
            "or leave --repo out."
        )
    if asked.probe != "server":
        check_device(asked.device)
    settings = Settings(MemoryMode(asked.memory), asked.device, asked.seed)
    request = RunRequest(loaded, asked.subjects, asked.questions, settings, asked.repo)
    if asked.probe == "contract":
        return _contracts(request, as_json)
    with report_folder(asked.out, request.scenario.name) as folder:
        if asked.probe == "server":
            report = _on_servers(request, asked.server, folder)
        else:
            with LiveProgress(Console(stderr=True)) as progress:
                report = run(request, progress)
        document = result_json.save(report, folder, ["poolbisect", *sys.argv[1:]])
        write_reports(folder)
    _record(asked.store or asked.out / FILE_NAME, document, folder)
    write_index(asked.out)
    if as_json:
        sys.stdout.buffer.write(result_json.encode(document) + b"\n")
    else:
        show(report, folder, Console())
    return report.exit_code


def _record(store: Path, document: dict[str, Any], folder: Path) -> None:
    """Keep the run for later comparisons; a run does not fail because that cannot be done."""
    try:
        record_run(store, document, folder)
    except PoolbisectError as error:
        click.echo(f"poolbisect: not recorded: {error}", err=True)


def _contracts(request: RunRequest, as_json: bool) -> int:
    findings = probe_contracts(request)
    if as_json:
        contracts = result_json.contract_document(request.scenario.name, findings)
        sys.stdout.buffer.write(result_json.encode(contracts) + b"\n")
    else:
        show_contracts(findings, Console())
    return result_json.contract_exit_code(findings)


def _on_servers(request: RunRequest, server: Mapping[str, Any], folder: Path) -> RunReport:
    from poolbisect.server_canary import run_on_servers

    options = options_from(server, request.scenario)
    with Console(stderr=True).status("") as status:
        return run_on_servers(
            request, options, folder, lambda name, words: status.update(Text(f"{name}: {words}"))
        )
