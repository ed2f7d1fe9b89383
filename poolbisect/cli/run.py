"""`poolbisect run`: a scenario on its subjects."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from poolbisect.canary import RunReport, RunRequest, probe_contracts, run
from poolbisect.cli.git_bisect import GitBisectCommand
from poolbisect.cli.server_options import options_from, refuse_without_server, server_options
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


@click.command(name="run", cls=GitBisectCommand)
@click.argument("scenario")
@click.option(
    "--subject",
    "subjects",
    multiple=True,
    metavar="S",
    help="What to measure beside the reference: original, corrected, unpadded, "
    "release:<version>, commit:<revision>. May be given more than once; default: the scenario's.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A clone of SGLang for commit:<revision>, bare or not; default: the repository around "
    "the current folder.",
)
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask only the first N problems. Fewer may not reach the last slot, or not decide.",
)
@click.option("--seed", type=int, help="Seed of sampled decoding; no effect on greedy decoding.")
@click.option(
    "--memory",
    type=click.Choice([mode.value for mode in MemoryMode]),
    default=MemoryMode.GUARD.value,
    show_default=True,
    help="silent: as the device; guard: the same bytes, out-of-range accesses recorded; "
    "strict: stop at the first.",
)
@click.option(
    "--probe",
    type=click.Choice(["miniature", "contract", "server"]),
    default="miniature",
    show_default=True,
    help="miniature: serve the problems; contract: only say which buffers are short, by how many "
    "rows and from which slot on, without running a model; server: serve them on the real SGLang, "
    "the installed one unless --subject names a commit or a release.",
)
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:<number>.")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The results database; default: poolbisect.sqlite in --out.",
)
@server_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Folder for result.json, the reports and the per-question answers.",
)
def command(
    scenario: str,
    subjects: tuple[str, ...],
    repo: Path | None,
    questions: int | None,
    seed: int | None,
    memory: str,
    probe: str,
    device: str,
    store: Path | None,
    server: Mapping[str, Any],
    as_json: bool,
    out: Path,
) -> int:
    """Run SCENARIO (a name from `poolbisect scenarios`, or a .toml file).

    Measures the reference first, then every subject on the same problems, and says whether each
    meets its expectation, and if accuracy fell, which buffer and which slot did it.

    Exit code: 0 every subject meets its expectation, 1 one without an expectation (or the
    reference) regresses, 2 usage, 3 infrastructure, 4 inconclusive, 130 interrupted.
    """
    refuse_without_server(server, probe)
    loaded = load_scenario(scenario)
    names = subjects or [subject.name for subject in loaded.subjects]
    if repo is not None and not any(name.startswith("commit:") for name in names):
        raise UsageError(
            "--repo is for subjects that are commits; name one with --subject commit:<revision>, "
            "or leave --repo out."
        )
    if probe != "server":
        check_device(device)
    settings = Settings(MemoryMode(memory), device, seed)
    request = RunRequest(loaded, subjects, questions, settings, repo)
    if probe == "contract":
        return _contracts(request, as_json)
    with report_folder(out, request.scenario.name) as folder:
        if probe == "server":
            report = _on_servers(request, server, folder)
        else:
            with LiveProgress(Console(stderr=True)) as progress:
                report = run(request, progress)
        document = result_json.save(report, folder, ["poolbisect", *sys.argv[1:]])
        write_reports(folder)
    _record(store or out / FILE_NAME, document, folder)
    write_index(out)
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
