"""What `poolbisect bisect` does with its options."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from poolbisect.bisection.outcome import Find
from poolbisect.bisection.plan import Budget
from poolbisect.cli.command_options import options_of, refuse_options
from poolbisect.cli.server_options import options_from, refuse_without_server
from poolbisect.culprit import workflow
from poolbisect.culprit.decisions import Decisions
from poolbisect.culprit.outcome import BisectOutcome
from poolbisect.culprit.probes import open_probe
from poolbisect.culprit.request import BisectRequest, pinned
from poolbisect.culprit.session import Session, latest_session
from poolbisect.errors import UsageError
from poolbisect.probes.command.options import stored
from poolbisect.probes.server import options as server
from poolbisect.reporting import bisect_json
from poolbisect.reporting.bisect_console import Funnel, show
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.folder import report_folder
from poolbisect.reporting.index import write_index
from poolbisect.scenario import Scenario, load_scenario

DEFAULT_SCENARIO = "mimo-canary"
_OF_A_START = {
    *("resume", "out", "as_json", "skips", "suspects", "forgets", "repo"),
    *("max_probes", "max_questions", "max_time"),
}
"""What --resume takes; everything else is kept by the session."""


@dataclass(frozen=True, slots=True)
class Start:
    """What this start was asked; `given` are the options that a session keeps. `resume` is None
    for a new bisect, and empty for the newest one there is."""

    budget: Budget
    decisions: Decisions
    resume: str | None
    out: Path
    as_json: bool
    given: Mapping[str, Any]


def run_bisect(ctx: click.Context, start: Start) -> int:
    """Start a bisect or go on with one, show and save it; the exit code."""
    given, budget, decisions = start.given, start.budget, start.decisions
    if start.resume is not None:
        _refuse_with_resume(ctx)
        session = Session(Path(start.resume)) if start.resume else latest_session(start.out)
        with Funnel(Console(stderr=True)) as funnel:
            outcome = workflow.go_on(session, open_probe, funnel, budget, decisions, given["repo"])
        document = _save(outcome, session.folder)
        folder = session.folder.resolve()
        if folder.parent.name == "bisect":
            write_index(folder.parents[1])
    else:
        if decisions.forgets:
            raise UsageError("--forget is for a bisect that was left; add --resume")
        if given["probe"] != "command":
            refuse_options(ctx, given["probe"])
        refuse_without_server(given["server"], given["probe"])
        if given["questions"] is not None and given["probe"] != "miniature":
            raise UsageError(f"--questions is for --probe miniature, not {given['probe']}")
        request, history = pinned(_request(given, decisions))
        with report_folder(start.out, "bisect") as folder:
            session = Session(folder)
            with Funnel(Console(stderr=True)) as funnel:
                outcome = workflow.start(request, history, session, open_probe, funnel, budget)
            document = _save(outcome, folder)
        write_index(start.out)
    if start.as_json:
        sys.stdout.buffer.write(bisect_json.encode(document) + b"\n")
    else:
        show(outcome, session.folder, Console())
    return outcome.exit_code


def _refuse_with_resume(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if parameter.name in _OF_A_START or source is None or source.name != "COMMANDLINE":
            continue
        what = parameter.opts[0] if isinstance(parameter, click.Option) else "CMD"
        raise UsageError(
            f"{what} is kept by the session that --resume goes on with; leave it out, or start a "
            "new bisect"
        )


def _request(given: Mapping[str, Any], decisions: Decisions) -> BisectRequest:
    """The request as typed."""
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
    name = given["scenario"] or (None if probe == "command" else DEFAULT_SCENARIO)
    scenario = None if name is None else load_scenario(name)
    if scenario is not None and probe == "miniature":
        scenario.check_probe(probe)
    use_timeline = given["use_timeline"]
    if use_timeline is None:
        use_timeline = probe in ("miniature", "server") and scenario is not None
    repository = None if releases else str(Path(given["repo"] or ".").resolve())
    return BisectRequest(
        history="release" if releases else "commit",
        good=good,
        bad=bad,
        find=Find(given["find"]),
        repository=repository,
        pre_releases=given["pre_releases"],
        inside=given["inside"],
        scenario=scenario,
        probe=probe,
        options=_options(given, scenario),
        timeline=use_timeline,
        confidence=given["confidence"],
        skips=decisions.skips,
        suspects=decisions.suspects,
        command=tuple(sys.argv[1:]),
    )


def _options(given: Mapping[str, Any], scenario: Scenario | None) -> dict[str, Any]:
    """The options of the probe, as its session keeps them."""
    match given["probe"]:
        case "command":
            return stored(given["arguments"], options_of(given))
        case "miniature":
            return {"questions": given["questions"]}
        case "server":
            return server.stored(options_from(given["server"], scenario))
    return {}


def _save(outcome: BisectOutcome, folder: Path) -> dict[str, Any]:
    document = bisect_json.bisect_document(outcome, folder)
    (folder / "result.json").write_bytes(bisect_json.encode(document) + b"\n")
    write_reports(folder)
    return document
