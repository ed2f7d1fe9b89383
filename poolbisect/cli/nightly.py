"""`poolbisect nightly`: the configured scenarios, compared with the past."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from poolbisect.nightly.config import NightlyConfig


@click.command(name="nightly")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Folder for the night, its runs and the index.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to run and how to decide, as TOML; default: the shipped one.",
)
@click.option(
    "--subject",
    "subjects",
    multiple=True,
    metavar="S",
    help="What is under test, in place of the configured: the first given takes the role that "
    "earlier nights had under test, others are series of their own.",
)
@click.option(
    "--scenario", "scenarios", multiple=True, metavar="S", help="In place of the configured."
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A clone of SGLang: its checked-out commit is measured as well, and searched for the "
    "culprit of a new regression.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The results database with the earlier nights; default: poolbisect.sqlite in --out.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="On a new regression of a commit, measure to confirm the culprit.",
)
@click.option(
    "--questions", type=click.IntRange(min=1), metavar="N", help="Ask only the first N problems."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
def command(
    out: Path,
    config: Path | None,
    subjects: tuple[str, ...],
    scenarios: tuple[str, ...],
    repo: Path | None,
    store: Path | None,
    bisect: bool,
    questions: int | None,
    as_json: bool,
) -> int:
    """Measure the configured scenarios and say what is new, persistent and fixed.

    Every series is compared with its scenario's reference, its baseline and its last good night;
    all tests of the night are corrected together. A finding is red while it is new or persistent.

    Exit code: 0 nothing wrong or fixed, 1 a regression that is new or persistent, 2 usage,
    3 infrastructure (nothing was measured), 4 inconclusive, 130 interrupted.
    """
    # Here, for these take long to import and --help need not.
    from rich.console import Console

    from poolbisect.nightly.config import load_config
    from poolbisect.nightly.console import NightProgress, show
    from poolbisect.nightly.document import encode
    from poolbisect.nightly.request import NightRequest
    from poolbisect.nightly.workflow import nightly
    from poolbisect.store import FILE_NAME

    asked = _chosen(load_config(config), scenarios, subjects, questions)
    words = ("poolbisect", *sys.argv[1:])
    request = NightRequest(asked, out, store or out / FILE_NAME, repo, bisect, words)
    with NightProgress(Console(stderr=True)) as progress:
        document = nightly(request, progress)
    if as_json:
        sys.stdout.buffer.write(encode(document) + b"\n")
    else:
        show(document, Console())
    return int(document["exit_code"])


def _chosen(
    config: NightlyConfig,
    scenarios: tuple[str, ...],
    subjects: tuple[str, ...],
    questions: int | None,
) -> NightlyConfig:
    """The configuration with what the command line says instead."""
    from msgspec import structs

    return structs.replace(
        config,
        scenarios=scenarios or config.scenarios,
        subjects=subjects or config.subjects,
        questions=questions or config.questions,
    )
