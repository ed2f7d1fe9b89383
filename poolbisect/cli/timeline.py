"""`poolbisect timeline`: every change of the pools' contract in a range of history."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from poolbisect.errors import UsageError
from poolbisect.history.ranges import HistoryRange, commit_range
from poolbisect.history.release_ranges import release_range
from poolbisect.history.repository import open_repository
from poolbisect.reporting.folder import report_folder
from poolbisect.reporting.timeline_console import ProbeProgress, show
from poolbisect.scenario import load_scenario
from poolbisect.timeline import every_plan, plans_for, timeline
from poolbisect.timeline.document import encode, timeline_document


@click.command(name="timeline")
@click.option("--good", required=True, metavar="X", help="The older end: a commit or a release.")
@click.option("--bad", required=True, metavar="Y", help="The newer end: a commit or a release.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A clone of SGLang, bare or not; default: the repository around the current folder.",
)
@click.option("--releases", is_flag=True, help="Search released versions instead of commits.")
@click.option("--pre-releases", is_flag=True, help="With --releases: pre-releases as well.")
@click.option("--scenario", metavar="S", help="Only the buffers and sizes of this scenario.")
@click.option("--all-parents", is_flag=True, help="Also the commits inside merges.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Child processes; default: one a processor."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Folder for result.json and the reports.",
)
def command(
    good: str,
    bad: str,
    repo: Path | None,
    releases: bool,
    pre_releases: bool,
    scenario: str | None,
    all_parents: bool,
    workers: int | None,
    as_json: bool,
    out: Path,
) -> int:
    """Say when each buffer's contract was broken and mended between X and Y.

    Takes the request pools and the row counts of their consumers out of every commit that changes
    them, without a checkout, and prints each transition: introduced, fixed, re-introduced,
    behaviour changed.

    Exit code: 0 answered, with or without transitions, 2 usage, 3 infrastructure, 130 interrupted.
    """
    if releases and (repo is not None or all_parents):
        raise UsageError("--releases takes neither --repo nor --all-parents; leave those out.")
    if pre_releases and not releases:
        raise UsageError("--pre-releases is for --releases; add that or leave this out.")
    plans = every_plan() if scenario is None else plans_for(load_scenario(scenario))
    with ExitStack() as stack:
        history: HistoryRange
        if releases:
            history = release_range(good, bad, pre_releases=pre_releases)
        else:
            repository = stack.enter_context(open_repository(repo or Path()))
            history = commit_range(repository, good, bad, all_parents=all_parents)
        with ProbeProgress(Console(stderr=True)) as progress:
            found = timeline(history, plans, workers=workers, watch=progress)
    # Here, for these take long to import and --help need not.
    from poolbisect.reporting.files import write_reports
    from poolbisect.reporting.index import write_index

    document = timeline_document(found)
    with report_folder(out, "timeline") as folder:
        (folder / "result.json").write_bytes(encode(document) + b"\n")
        write_reports(folder)
    write_index(out)
    if as_json:
        sys.stdout.buffer.write(encode(document) + b"\n")
    else:
        show(found, Console())
        Console().print(Text(f"Report: {folder}", style="dim"))
    return 0
