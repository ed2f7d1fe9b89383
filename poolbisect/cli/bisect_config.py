"""`poolbisect bisect --config`: which switch of the configuration makes the difference."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from poolbisect.cli.command_options import PARAMETERS as COMMAND_PARAMETERS
from poolbisect.cli.command_options import command_options, refuse_options
from poolbisect.cli.config_request import request_of
from poolbisect.cli.server_options import PREFIX as SERVER_PREFIX
from poolbisect.cli.server_options import refuse_without_server, server_options
from poolbisect.errors import UsageError
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.folder import report_folder
from poolbisect.reporting.index import write_index
from poolbisect.scenario import Symptom
from poolbisect.switches import journal
from poolbisect.switches.console import LaunchProgress, show
from poolbisect.switches.document import config_document, encode
from poolbisect.switches.journal import Journal
from poolbisect.switches.launch import LaunchOracle
from poolbisect.switches.request import PROBES, open_oracle
from poolbisect.switches.workflow import config_bisect

_WITH_RESUME = ("resume", "as_json", "out")
_SESSION = "config-*/*"


class _ByProbe(click.Command):
    """Its help sets the options of one probe only apart."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {
            "Options": [],
            "For --probe command": [],
            "For --probe server": [],
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            name = parameter.name or ""
            where = "Options"
            if name in COMMAND_PARAMETERS:
                where = "For --probe command"
            elif name.startswith(SERVER_PREFIX):
                where = "For --probe server"
            if record is not None:
                sections[where].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


@click.command(name="bisect --config", cls=_ByProbe)
@click.option("--scenario", metavar="S", help="What to serve and ask (see `poolbisect scenarios`).")
@click.option(
    "--subject",
    metavar="X",
    help="The code to launch: original, corrected …, release:<version>, commit:<revision>; "
    "default: the one that the scenario expects to be bad.",
)
@click.option(
    "--switch",
    "switch_texts",
    multiple=True,
    metavar="KEY=OFF:ON",
    help="A setting and its two states, such as page-size=1:64; several that go together with "
    "commas; or the name of a default switch. May be given more than once; default: the "
    "scenario's.",
)
@click.option(
    "--switches",
    "switch_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Switches from a TOML file.",
)
@click.option(
    "--without", multiple=True, metavar="NAME", help="Leave a switch as the scenario has it."
)
@click.option(
    "--probe",
    type=click.Choice(PROBES),
    default=PROBES[0],
    show_default=True,
    help="miniature: serve a small model; server: the real SGLang; command: run CMD, where "
    "{switches} becomes the flags and names in CAPITALS become environment variables.",
)
@click.option("--questions", type=click.IntRange(min=1), metavar="N", help="Ask only the first N.")
@click.option(
    "--symptom",
    type=click.Choice([symptom.value for symptom in Symptom]),
    help="What makes a launch bad; default: the scenario's. contract: any out-of-range access.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    metavar="N",
    help="The most launches of one configuration for one verdict.",
)
@click.option(
    "--noise",
    type=click.FloatRange(min=0, max=0.5, max_open=True),
    default=0.0,
    metavar="SHARE",
    help="The chance that the verdict of one launch is wrong; more launches then decide.",
)
@click.option(
    "--gate", type=click.FloatRange(0, 1), help="The score that everything off must reach."
)
@click.option(
    "--concurrency-table/--no-concurrency-table",
    "tabulate",
    default=None,
    help="Score against concurrency; default: if concurrency turns out to matter.",
)
@click.option(
    "--repo", type=click.Path(path_type=Path), metavar="PATH", help="Where commit:<rev> is."
)
@click.option("--seed", type=int, help="Seed of sampled decoding; no effect on greedy decoding.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:<number>.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[FOLDER]",
    help="Go on with a search that was left, by default the newest one below --out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Folder for result.json, the reports and the journal.",
)
@command_options
@server_options
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.pass_context
def command(
    ctx: click.Context, /, resume: str | None, as_json: bool, out: Path, **given: Any
) -> int:
    """Find which switches of one configuration make one subject bad.

    Everything off must be good and everything on bad; the smallest set that makes it bad is
    found, launched a second time, and launched without each of its members.

    Exit code: 0 found, 2 usage (or all off is bad, or all on is good), 3 infrastructure,
    4 inconclusive, 130 interrupted.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    argv = ["poolbisect", *sys.argv[1:]]
    with ExitStack() as stack:
        if resume is None:
            if given["probe"] != "command":
                refuse_options(ctx, given["probe"])
            refuse_without_server(given["server"], given["probe"])
            request = request_of(given)
            name = request.scenario.name if request.scenario else "command"
            folder = stack.enter_context(report_folder(out, f"config-{name}"))
            oracle = open_oracle(request, folder)
            opened = journal.create(folder / journal.FILE, request, argv, now)
            session = stack.enter_context(opened)
        else:
            _refuse_with_resume(ctx)
            folder = Path(resume) if resume else _newest(out)
            session = stack.enter_context(journal.resume(folder / journal.FILE, now))
            oracle = open_oracle(session.request, folder)
        document = run_config_bisect(session, oracle, folder, argv, as_json=as_json)
    if out.is_dir() and folder.resolve().is_relative_to(out.resolve()):
        write_index(out)
    code: int = document["exit_code"]
    return code


def run_config_bisect(
    session: Journal, oracle: LaunchOracle, folder: Path, argv: Sequence[str], *, as_json: bool
) -> dict[str, Any]:
    """Search in an open session with the oracle of its request, write result.json and its
    reports into `folder`, print the answer; its document."""
    with LaunchProgress(Console(stderr=True), len(session.request.switches)) as progress:
        report = config_bisect(oracle, session, announce=progress.announce, watch=progress.watch)
    document = config_document(report, folder, argv, _environment())
    (folder / "result.json").write_bytes(encode(document) + b"\n")
    write_reports(folder)
    if as_json:
        sys.stdout.buffer.write(encode(document) + b"\n")
    else:
        show(report, folder, Console())
    return document


def _refuse_with_resume(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE" or parameter.name in _WITH_RESUME:
            continue
        what = parameter.opts[0] if isinstance(parameter, click.Option) else "CMD"
        raise UsageError(
            f"{what} is kept by the session that --resume goes on with; leave it out, or start a "
            "new search"
        )


def _newest(out: Path) -> Path:
    """The folder of the newest session below `out`, by its name, which is a time."""
    folders = [path.parent for path in out.glob(f"{_SESSION}/{journal.FILE}")]
    if not folders:
        raise UsageError(f"--resume: there is no configuration bisect below {out}; give its folder")
    return max(folders, key=lambda folder: folder.name)


def _environment() -> dict[str, Any]:
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
    for package in ("poolbisect", "torch", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
