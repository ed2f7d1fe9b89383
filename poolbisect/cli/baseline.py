"""`poolbisect baseline`: list what is recorded, or record a run."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console

from poolbisect.baseline_recording import Recording, record_baseline, recording_folder
from poolbisect.baselines import Baseline, BaselineSpread, Gate, load_baselines
from poolbisect.errors import UsageError
from poolbisect.formats import Choice, read_score
from poolbisect.reporting.baseline_list import baseline_document, show_baselines
from poolbisect.scenario import scenario_folder, scenario_names

_Folder = click.Path(path_type=Path, file_okay=False)


@click.group(name="baseline")
def command() -> None:
    """List the recorded baselines, or record one from runs."""


@command.command(name="list")
@click.argument("scenario", required=False)
@click.option("--baselines", type=_Folder, help="Folder of the baselines, if not the shipped one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
def list_command(scenario: str | None, baselines: Path | None, as_json: bool) -> int:
    """List baselines, of SCENARIO or of all, and whether their gates are any use.

    Exit code: 0, or 2 if a file cannot be read; the others are shown all the same.
    """
    folder = baselines or scenario_folder() / "baselines"
    names = [scenario] if scenario else _scenarios(folder)
    recorded: dict[str, list[Baseline]] = {}
    problems: list[str] = []
    for name in names:
        try:
            recorded[name] = load_baselines(name, folder)
        except UsageError as error:
            problems.append(str(error))
    if as_json:
        document = msgspec.json.encode(baseline_document(recorded, problems))
        sys.stdout.buffer.write(msgspec.json.format(document, indent=2) + b"\n")
        sys.stdout.buffer.flush()
    else:
        show_baselines(recorded, Console())
    for problem in problems:
        click.echo(f"poolbisect: {problem}", err=True)
    return 2 if problems else 0


@command.command(name="record")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--reason", required=True, help="Why the baseline is set or changed; kept for good.")
@click.option("--scenario", help="Whose baseline it is, where the runs do not say.")
@click.option("--subject", help="Which subject of the runs; default: their reference.")
@click.option("--metric", help="Which metric, where a file has several.")
@click.option("--name", help="Name of the baseline; default: the hardware.")
@click.option("--source", help="Where the scores are from; default: the files.")
@click.option(
    "--spread-kind",
    type=click.Choice([kind.value for kind in BaselineSpread]),
    help="What the spread of several runs is; default: run-to-run.",
)
@click.option("--gate", type=click.FloatRange(0, 1), help="A pass mark for the score.")
@click.option("--strict", is_flag=True, help="The score must be above the gate, not reach it.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of the key that the runs do not say, such as hardware='8 x H200'.",
)
@click.option("--baselines", type=_Folder, help="Folder to write to, if not beside the scenarios.")
def record_command(
    runs: tuple[Path, ...],
    reason: str,
    scenario: str | None,
    subject: str | None,
    metric: str | None,
    name: str | None,
    source: str | None,
    spread_kind: str | None,
    gate: float | None,
    strict: bool,
    keys: tuple[str, ...],
    baselines: Path | None,
) -> int:
    """Record the score of one or more RUNs as a baseline, with the reason.

    One run has a binomial spread; several have the standard deviation between them. A baseline of
    the same key is replaced, and what it said is kept in its history.
    """
    choice = Choice(subject=subject, reference=True, metric=metric)
    scores = [read_score(path, choice) for path in runs]
    scenarios = {scenario} if scenario else {score.scenario for score in scores}
    (of,) = scenarios if len(scenarios) == 1 else (None,)
    if of is None:
        raise UsageError("the runs do not say one scenario; give --scenario NAME")
    recording = Recording(
        scenario=of,
        reason=reason,
        name=name,
        source=source,
        spread_kind=BaselineSpread(spread_kind) if spread_kind else None,
        gate=None if gate is None else Gate(score=gate, strict=strict),
        key=dict(_field(text) for text in keys),
    )
    today = datetime.now(UTC).date()
    path, new = record_baseline(scores, recording, recording_folder(baselines), today)
    click.echo(
        f"{path}: {new.name}, {new.mean:.4f} ± {new.spread:.4f} ({new.spread_kind}), "
        f"n = {new.n}, {len(new.changes)} entries of history"
    )
    return 0


def _scenarios(folder: Path) -> list[str]:
    recorded = [path.stem for path in folder.glob("*.toml")] if folder.is_dir() else []
    return sorted({*scenario_names(), *recorded})


def _field(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise UsageError(f"--key {text}: give FIELD=VALUE")
    return name.replace("-", "_"), value
