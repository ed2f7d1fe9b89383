"""`poolbisect compare`: two scores, or a score and a baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from poolbisect.baseline_comparison import PREFIX, compare_to_baseline, named_baselines
from poolbisect.comparison import ALPHA, SMALLEST_DROP, compare
from poolbisect.errors import UsageError
from poolbisect.formats import Choice, read_score
from poolbisect.reporting.compare_console import show_comparison
from poolbisect.reporting.compare_json import compare_document

_Share = click.FloatRange(0, 1, min_open=True, max_open=True)
_Value = TypeVar("_Value")
_TWICE = "Give it twice for A and then B."


@click.command(name="compare")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--subject", multiple=True, metavar="S", help=f"Which subject of a run. {_TWICE}")
@click.option(
    "--metric",
    multiple=True,
    metavar="M",
    help=f"Which metric, filter or task, where a file has several. {_TWICE}",
)
@click.option(
    "--attempt",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="K",
    help=f"Which attempt, where a file numbers several. {_TWICE}",
)
@click.option(
    "--scale",
    type=click.Choice(["1", "100"]),
    multiple=True,
    help=f"What the best score reads, where a file does not say. {_TWICE}",
)
@click.option(
    "--asked",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help=f"How many questions were asked, where a file does not say. {_TWICE}",
)
@click.option("--alpha", type=_Share, default=ALPHA, show_default=True, help="Two-sided level.")
@click.option(
    "--smallest-drop",
    type=_Share,
    default=SMALLEST_DROP,
    show_default=True,
    help="The drop, as a share of one, that must have shown before there is no regression.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="FIELD",
    help="Compare although FIELD differs, such as hardware or n. May be given more than once.",
)
@click.option(
    "--baselines",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the baselines, for A = baseline:SCENARIO.",
)
@click.option(
    "--show",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="List at most N lost and N gained questions.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
def command(
    before: str,
    after: str,
    subject: tuple[str, ...],
    metric: tuple[str, ...],
    attempt: tuple[int, ...],
    scale: tuple[str, ...],
    asked: tuple[int, ...],
    alpha: float,
    smallest_drop: float,
    allow: tuple[str, ...],
    baselines: Path | None,
    show: int,
    as_json: bool,
) -> int:
    """Compare score file B with A: did accuracy drop?

    A and B are run folders, their result.json, per-question JSONL (id and correct), lm-eval's
    results, samples or table, sgl-eval's metrics.json or samples, or what SGLang's evals print. A
    may be baseline:SCENARIO or baseline:SCENARIO/NAME.

    Paired where the questions match, else unpaired, and it says so.

    Exit code: 0 no regression, and a drop of interest would have shown; 1 regression; 2 usage;
    4 inconclusive, or not comparable.
    """
    choices = [
        Choice(
            subject=_side(subject, side, "--subject"),
            metric=_side(metric, side, "--metric"),
            attempt=_side(attempt, side, "--attempt"),
            scale=_scale(_side(scale, side, "--scale")),
            asked=_side(asked, side, "--asked"),
        )
        for side in (0, 1)
    ]
    if before.startswith(PREFIX):
        report = compare_to_baseline(
            named_baselines(before, baselines),
            read_score(Path(after), choices[1]),
            alpha=alpha,
            smallest_drop=smallest_drop,
            allow=allow,
        )
    else:
        report = compare(
            read_score(Path(before), choices[0]),
            read_score(Path(after), choices[1]),
            alpha=alpha,
            smallest_drop=smallest_drop,
            allow=allow,
        )
    if as_json:
        # ASCII: answers of a model may hold what is no valid Unicode.
        click.echo(json.dumps(compare_document(report), indent=2, allow_nan=False))
    else:
        show_comparison(report, Console(), show)
    return report.exit_code


def _side(values: tuple[_Value, ...], side: int, option: str) -> _Value | None:
    """The value for A (0) or B (1) of an option given never, once for both, or twice."""
    if len(values) > 2:
        raise UsageError(f"{option} is given {len(values)} times; once for both files, or twice")
    return values[min(side, len(values) - 1)] if values else None


def _scale(text: str | None) -> int | None:
    return None if text is None else int(text)
