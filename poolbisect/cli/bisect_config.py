"""`poolbisect bisect --config`: which switch of the configuration makes the difference."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from poolbisect.cli.command_options import PARAMETERS as COMMAND_PARAMETERS
from poolbisect.cli.command_options import command_options, options_of, refuse_options
from poolbisect.cli.server_options import PREFIX as SERVER_PREFIX
from poolbisect.cli.server_options import options_from, refuse_without_server, server_options
from poolbisect.errors import UsageError
from poolbisect.probes.command.options import stored as stored_command
from poolbisect.reporting.folder import report_folder
from poolbisect.scenario import Scenario, Symptom, load_scenario
from poolbisect.switches import journal
from poolbisect.switches.console import LaunchProgress, show
from poolbisect.switches.defaults import default_switches
from poolbisect.switches.document import config_document, encode
from poolbisect.switches.journal import Journal
from poolbisect.switches.markdown import markdown
from poolbisect.switches.plan import Plan
from poolbisect.switches.request import PROBES, ConfigRequest, open_oracle
from poolbisect.switches.server_defaults import server_switches
from poolbisect.switches.switch import Switch, check_distinct, parse_switch, read_switches
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
    help="Folder for result.json, report.md and the journal.",
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
            opened = journal.create(folder / journal.FILE, request, argv, now)
        else:
            _refuse_with_resume(ctx)
            folder = Path(resume) if resume else _newest(out)
            opened = journal.resume(folder / journal.FILE, now)
        document = run_config_bisect(stack.enter_context(opened), folder, argv, as_json=as_json)
    code: int = document["exit_code"]
    return code


def run_config_bisect(
    session: Journal, folder: Path, argv: Sequence[str], *, as_json: bool
) -> dict[str, Any]:
    """Search in an open session, write result.json and report.md, print the answer; its document.

    Raises:
        UsageError, NotApplicableError: nothing of it can be launched.
    """
    oracle = open_oracle(session.request, folder)
    with LaunchProgress(Console(stderr=True), len(session.request.switches)) as progress:
        report = config_bisect(oracle, session, announce=progress.announce, watch=progress.watch)
    document = config_document(report, folder, argv, _environment())
    (folder / "result.json").write_bytes(encode(document) + b"\n")
    (folder / "report.md").write_text(markdown(report, argv), encoding="utf-8")
    if as_json:
        sys.stdout.buffer.write(encode(document) + b"\n")
    else:
        show(report, folder, Console())
    return document


def request_of(given: Mapping[str, Any]) -> ConfigRequest:
    """What the options ask. UsageError where they do not fit together."""
    probe = given["probe"]
    plan = Plan(given["repeats"], given["noise"], gate=given["gate"])
    shared = {
        "probe": probe,
        "questions": given["questions"],
        "tabulate": given["tabulate"],
        "seed": given["seed"],
        "device": given["device"],
        "plan": plan,
    }
    if probe == "command":
        return _command_request(given, shared)
    if given["arguments"]:
        raise UsageError(f"{given['arguments'][0]!r}: only --probe command takes a command")
    if given["scenario"] is None:
        raise UsageError("--config needs --scenario; `poolbisect scenarios` lists them")
    scenario = _with_symptom(load_scenario(given["scenario"]), given["symptom"])
    scenario.check_probe(probe)
    defaults = server_switches(scenario) if probe == "server" else default_switches(scenario)
    switches = _chosen(defaults, given)
    judging = scenario.judging
    shared["plan"] = replace(plan, alpha=judging.alpha, smallest_drop=judging.smallest_drop)
    return ConfigRequest(
        scenario=scenario,
        subject=given["subject"] or _suspect(scenario),
        symptom=scenario.symptom.value,
        switches=switches,
        folder=None if given["repo"] is None else str(given["repo"].resolve()),
        options=_server_options(given["server"], scenario, switches) if probe == "server" else {},
        **shared,
    )


def _command_request(given: Mapping[str, Any], shared: dict[str, Any]) -> ConfigRequest:
    for name in ("scenario", "subject", "symptom", "repo"):
        if given[name] is not None:
            raise UsageError(f"--{name} is not for --probe command; leave it out")
    for name, instead in (("flaky", "--noise"), ("keep_build", "nothing")):
        if given[name]:
            raise UsageError(
                f"--{name.replace('_', '-')} is for a bisect over commits; with --config give "
                f"{instead} instead"
            )
    options = options_of(given)
    argv = given["arguments"]
    return ConfigRequest(
        scenario=None,
        subject=shlex.join(argv),
        symptom=options.bad_if.value,
        switches=_chosen([], given),
        folder=str(Path.cwd()),
        options=stored_command(argv, options),
        **shared,
    )


def _server_options(
    given: Mapping[str, Any], scenario: Scenario, switches: Sequence[Switch]
) -> dict[str, Any]:
    from poolbisect.probes.server.options import stored

    for name, instead in (("rule", "--gate"), ("rounds", "--repeats"), ("eval_command", "--eval")):
        if given[name] not in (None, ()):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is not for --config; use {instead}")
    keys = {setting.key for switch in switches for setting in switch.settings}
    if given["concurrency"] is not None and "concurrency" in keys:
        raise UsageError(
            "--concurrency is what the switch concurrency sets; leave one out, such as with "
            "--without concurrency"
        )
    return stored(options_from(given, scenario))


def _chosen(defaults: Sequence[Switch], given: Mapping[str, Any]) -> tuple[Switch, ...]:
    """The switches to try: those given, else the defaults, less those left out. UsageError."""
    texts, file, without = given["switch_texts"], given["switch_file"], given["without"]
    switches = [parse_switch(text, defaults) for text in texts]
    if file is not None:
        switches += read_switches(file)
    if not texts and file is None:
        switches = list(defaults)
    names = [switch.name for switch in switches]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise UsageError(f"--without {unknown[0]}: the switches are {', '.join(names) or 'none'}")
    kept = tuple(switch for switch in switches if switch.name not in without)
    check_distinct(kept)
    return kept


def _with_symptom(scenario: Scenario, symptom: str | None) -> Scenario:
    if symptom is None:
        return scenario
    return msgspec.structs.replace(scenario, symptom=Symptom(symptom))


def _suspect(scenario: Scenario) -> str:
    """The subject the scenario expects to be bad. UsageError without one, or with several."""
    bad = [one.name for one in scenario.subjects if one.expect.value == "bad"]
    if len(bad) != 1:
        raise UsageError(
            f"{scenario.name} names {len(bad)} subjects as bad; say which to launch with --subject"
        )
    return bad[0]


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
