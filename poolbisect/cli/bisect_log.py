"""`poolbisect bisect log`: a session's decisions as commands that can be typed again."""

from __future__ import annotations

from pathlib import Path

import click

from poolbisect.bisection.commands import replay_commands
from poolbisect.culprit.session import Session, latest_session
from poolbisect.errors import UsageError


@click.command(name="log")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Where to look for the newest session if no FOLDER is given.",
)
def command(folder: Path | None, out: Path) -> int:
    """Print how the bisect in FOLDER went: the command that started it, what each probe saw as a
    comment, and every --skip, --forget and --suspect as a command."""
    session = Session(folder) if folder is not None else latest_session(out)
    if session.is_of_switches:
        raise UsageError(
            f"{session.folder} is a bisect of switches (--config), which has no commands to "
            "replay; its launches are in journal.jsonl and in its reports"
        )
    for line in replay_commands(session.record()):
        click.echo(line)
    return 0
