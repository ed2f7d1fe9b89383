"""`poolbisect run`: a scenario on its subjects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from poolbisect.cli.git_bisect import GitBisectCommand
from poolbisect.cli.server_options import server_options


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
    type=click.Choice(["silent", "guard", "strict"]),
    default="guard",
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
    from poolbisect.cli.run_start import Start, start

    return start(
        Start(scenario, subjects, repo, questions, seed, memory, probe, device, store, server, out),
        as_json=as_json,
    )
