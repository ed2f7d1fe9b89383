"""`poolbisect bisect`: from a range of history to the culprit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from poolbisect.cli.command_options import PARAMETERS as COMMAND_PARAMETERS
from poolbisect.cli.command_options import command_options
from poolbisect.cli.durations import Duration
from poolbisect.cli.server_options import PREFIX as SERVER_PREFIX
from poolbisect.cli.server_options import server_options

_DEFAULT_SCENARIO = "mimo-canary"
_PROBES = ("contract", "miniature", "command", "server")


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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of one probe only stand apart."""
        sections: dict[str, list[tuple[str, str]]] = {
            "Options": [],
            "For --probe command": [],
            "For --probe server": [],
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            where = "Options"
            if parameter.name in COMMAND_PARAMETERS:
                where = "For --probe command"
            elif (parameter.name or "").startswith(SERVER_PREFIX):
                where = "For --probe server"
            sections[where].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


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
    type=click.Choice(_PROBES),
    default="contract",
    show_default=True,
    help="contract: are the buffers long enough (milliseconds, no model); miniature: serve a small "
    "model on that commit's pools (seconds); command: run CMD; server: that commit's real SGLang.",
)
@click.option(
    "--find",
    type=click.Choice(["introduced", "fixed"]),
    default="introduced",
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
    help="Go on with a bisect that was left, by default the newest one below --out. A budget holds "
    "for the start it is given to.",
)
@click.option(
    "--forget", "forgets", multiple=True, metavar="REV", help="With --resume: measure it anew."
)
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of one probe of the miniature: at least N, and enough to use the last request slot.",
)
@command_options
@server_options
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
    from poolbisect.bisection.plan import Budget
    from poolbisect.cli.bisect_run import Start, run_bisect
    from poolbisect.culprit.decisions import Decisions

    start = Start(
        Budget(max_probes, max_questions, max_time),
        Decisions(skips, forgets, suspects),
        resume,
        out,
        as_json,
        given,
    )
    return run_bisect(ctx, start)
