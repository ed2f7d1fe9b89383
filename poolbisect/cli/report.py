"""`poolbisect report`: the reports of an earlier run, rendered again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from poolbisect.errors import UsageError


@click.command(name="report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["all", "html", "markdown", "junit", "json"]),
    default="all",
    show_default=True,
    help="html, markdown, junit: that file only; all: the three; json: print the run's "
    "result.json on stdout and write nothing.",
)
@click.option(
    "--markdown-limit",
    type=click.IntRange(min=200),
    metavar="BYTES",
    help="Most bytes of report.md, which leaves whole sections out to keep it; default: 1 MiB, "
    "that of a GitHub step summary.",
)
@click.option(
    "--index", is_flag=True, help="RUN is a folder of reports: write its index.html, no report."
)
def command(run: Path, format_: str, markdown_limit: int | None, index: bool) -> int:
    """Render the reports of an earlier run, bisect, timeline or night again.

    RUN is its folder, which holds result.json; report.html, report.md and junit.xml are written
    there, and their paths printed.

    Exit code: 0 written, 2 no such run, an unknown schema, or a damaged file.
    """
    from poolbisect.reporting.documents.reading import RESULT, read_document, report_home
    from poolbisect.reporting.files import FORMATS, STEP_SUMMARY_LIMIT, write_reports
    from poolbisect.reporting.index import write_index

    if index:
        if format_ not in ("all", "html"):
            raise UsageError(f"--index is HTML; leave out --format {format_}")
        click.echo(write_index(run))
        return 0
    if format_ == "json":
        home = report_home(run)
        read_document(home)
        sys.stdout.buffer.write((home / RESULT).read_bytes())
        return 0
    formats = FORMATS if format_ == "all" else (format_,)
    limit = STEP_SUMMARY_LIMIT if markdown_limit is None else markdown_limit
    for path in write_reports(run, markdown_limit=limit, formats=formats):
        click.echo(path)
    return 0
