"""`poolbisect bisect`: from a range of history to the culprit."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from poolbisect.bisection.outcome import Find
from poolbisect.bisection.plan import Budget
from poolbisect.cli.command_options import PARAMETERS, command_options, options_of, refuse_options
from poolbisect.cli.durations import Duration
from poolbisect.culprit import workflow
from poolbisect.culprit.decisions import Decisions
from poolbisect.culprit.outcome import BisectOutcome
from poolbisect.culprit.probes import NAMES, open_probe
from poolbisect.culprit.request import BisectRequest
from poolbisect.culprit.session import Session, latest_session
from poolbisect.errors import UsageError
from poolbisect.history.ranges import HistoryRange
from poolbisect.probes.command.options import stored
from poolbisect.reporting import bisect_json
from poolbisect.reporting.bisect_console import Funnel, show
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.folder import report_folder
from poolbisect.scenario import load_scenario

_DEFAULT_SCENARIO = "mimo-canary"
_FIXED = {
    *("good", "bad", "repo", "releases", "pre_releases", "scenario", "probe", "find"),
    *("confidence", "inside", "use_timeline", "arguments", "questions", *PARAMETERS),
}
"""What a session keeps, and --resume therefore does not take."""


class _Bisect(click.Command):
    """Hands `bisect --config …` and `bisect log` over to commands of their own."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        ours = args[: args.index("--")] if "--" in args else args
        if "--config" in ours:
            from poolbisect.cli.bisect_config import command as by_switches

            args.remove("--config")
            return by_switches.make_context(f"{info_name} --config", args, parent, **extra)
        if ours[:1] == ["log"]:
            from poolbisect.cli.bisect_log import command as log

            return log.make_context(f"{info_name} log", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@dataclass(frozen=True, slots=True)
class _Limits:
    max_probes: int | None
    max_questions: int | None
    max_time: float | None

    def budget(self) -> Budget:
        return Budget(self.max_probes, self.max_questions, self.max_time)


@click.command(name="bisect", cls=_Bisect)
@click.option("--good", metavar="X", help="A commit or release that is good.")
@click.option("--bad", metavar="Y", help="A commit or release that is bad.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A clone, bare or not; default: the repository around the current folder.",
)
@click.option("--releases", is_flag=True, help="Search released versions instead of commits.")
@click.option("--pre-releases", is_flag=True, help="With --releases: pre-releases as well.")
@click.option(
    "--scenario",
    metavar="S",
    help=f"What to look for; default {_DEFAULT_SCENARIO}, and none for --probe command.",
)
@click.option(
    "--probe",
    type=click.Choice(NAMES),
    default="contract",
    show_default=True,
    help="contract: are the buffers long enough (milliseconds, no model); miniature: serve a small "
    "model on that commit's pools (seconds); command: run CMD; server: that commit's real SGLang.",
)
@click.option(
    "--find",
    type=click.Choice([find.value for find in Find]),
    default=Find.INTRODUCED.value,
    show_default=True,
    help="introduced: the first bad one, X being older; fixed: the first good one, Y being older.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.99,
    show_default=True,
    help="Probability at which a culprit is named.",
)
@click.option("--max-probes", type=click.IntRange(min=1), help="Answer with what is known then.")
@click.option("--max-questions", type=click.IntRange(min=1), help="The same, in questions.")
@click.option("--max-time", type=Duration(), metavar="T", help="The same, as 90s, 10m or 2h.")
@click.option(
    "--all-parents",
    "inside",
    is_flag=True,
    help="If the culprit is a merge, go on among the commits it brings in.",
)
@click.option(
    "--timeline/--no-timeline",
    "use_timeline",
    default=None,
    help="Let the contract timeline say where to look first; default: for the miniature and the "
    "server probe.",
)
@click.option("--skip", "skips", multiple=True, metavar="REV|A..B", help="Do not measure these.")
@click.option("--suspect", "suspects", multiple=True, metavar="REV", help="Measure it early.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[FOLDER]",
    help="Go on with a bisect that was left, by default the newest one below --out.",
)
@click.option(
    "--forget", "forgets", multiple=True, metavar="REV", help="With --resume: measure it anew."
)
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of one probe of the miniature: at least N, and enough to reach the last request slot.",
)
@command_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Folder for the session and its reports.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    max_probes: int | None,
    max_questions: int | None,
    max_time: float | None,
    skips: tuple[str, ...],
    suspects: tuple[str, ...],
    forgets: tuple[str, ...],
    resume: str | None,
    as_json: bool,
    out: Path,
    **given: Any,
) -> int:
    """Find the first bad commit between X (good) and Y (bad), or with --find fixed the first good
    one between Y (bad) and X (good).

    Measures both ends, then what tells most; names a commit once it and the one before it were
    measured, with the buffer and slot at fault. The repository is only read.

    `bisect --config` asks which server flag makes the difference instead; `bisect log [FOLDER]`
    prints a session's decisions as commands.

    Exit code: 0 found, 2 usage or both ends alike, 3 infrastructure, 4 a range of suspects or too
    little evidence, 130 interrupted.
    """
    budget = _Limits(max_probes, max_questions, max_time).budget()
    decisions = Decisions(skips, forgets, suspects)
    if resume is not None:
        _refuse_with_resume(ctx)
        session = Session(Path(resume)) if resume else latest_session(out)
        asked = workflow.Asked((), budget=budget, decisions=decisions)
        with Funnel(Console(stderr=True)) as funnel:
            history = session.request().open()
            outcome = workflow.go_on(history, session, open_probe, asked, funnel)
        document = _save(outcome, session.folder)
    else:
        if forgets:
            raise UsageError("--forget is for a bisect that was left; add --resume")
        if given["probe"] != "command":
            refuse_options(ctx, given["probe"])
        request, history = _request(given)
        asked = workflow.Asked(tuple(sys.argv[1:]), given["confidence"], budget, decisions)
        with report_folder(out, "bisect") as folder:
            session = Session(folder)
            with Funnel(Console(stderr=True)) as funnel:
                outcome = workflow.start(request, history, session, open_probe, asked, funnel)
            document = _save(outcome, folder)
    if as_json:
        sys.stdout.buffer.write(bisect_json.encode(document) + b"\n")
    else:
        show(outcome, session.folder, Console())
    return outcome.exit_code


def _refuse_with_resume(ctx: click.Context) -> None:
    for name in _FIXED:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = next(p for p in ctx.command.params if p.name == name)
            what = option.opts[0] if isinstance(option, click.Option) else "CMD"
            raise UsageError(
                f"{what} is kept by the session that --resume goes on with; leave it out, or start "
                "a new bisect"
            )


def _request(given: Mapping[str, Any]) -> tuple[BisectRequest, HistoryRange]:
    """The request, its range checked and its ends pinned to full names."""
    good, bad = given["good"], given["bad"]
    if good is None or bad is None:
        missing = "--good and --bad" if good is None and bad is None else "--good"
        missing = "--bad" if bad is None and good is not None else missing
        raise UsageError(f"a bisect needs {missing}; or give --resume to go on with one")
    releases, probe = given["releases"], given["probe"]
    if releases and given["repo"] is not None:
        raise UsageError("--releases takes no --repo; leave one out")
    if releases and given["inside"]:
        raise UsageError("--all-parents is for commits; leave it or --releases out")
    if given["pre_releases"] and not releases:
        raise UsageError("--pre-releases is for --releases; add that or leave this out")
    if given["arguments"] and probe != "command":
        raise UsageError(f"{given['arguments'][0]!r}: only --probe command takes a command")
    name = given["scenario"] or (None if probe == "command" else _DEFAULT_SCENARIO)
    scenario = None if name is None else load_scenario(name)
    use_timeline = given["use_timeline"]
    if use_timeline is None:
        use_timeline = probe in ("miniature", "server") and scenario is not None
    repository = None if releases else str(Path(given["repo"] or ".").resolve())
    request = BisectRequest(
        history="release" if releases else "commit",
        good=good,
        bad=bad,
        find=Find(given["find"]),
        repository=repository,
        pre_releases=given["pre_releases"],
        inside=given["inside"],
        scenario=scenario,
        probe=probe,
        options=_options(given),
        timeline=use_timeline,
    )
    history = request.open()
    older, newer = history.entries[0].name, history.entries[-1].name
    introduced = request.find is Find.INTRODUCED
    pinned = {"good": older, "bad": newer} if introduced else {"good": newer, "bad": older}
    return msgspec.structs.replace(request, **pinned), history


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the probe, as its session keeps them."""
    match given["probe"]:
        case "command":
            return stored(given["arguments"], options_of(given))
        case "miniature":
            return {"questions": given["questions"]}
    return {}


def _save(outcome: BisectOutcome, folder: Path) -> dict[str, Any]:
    document = bisect_json.bisect_document(outcome, folder)
    (folder / "result.json").write_bytes(bisect_json.encode(document) + b"\n")
    write_reports(folder)
    return document
