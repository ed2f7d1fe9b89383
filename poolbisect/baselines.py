"""Recorded baselines: scenarios/baselines/<scenario>.toml, each score with its full key.

A baseline names what it was measured on. A run is compared only with one whose key agrees in
every field; otherwise the differing fields are named and nothing is concluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from poolbisect.evidence.baseline import BaselineScore, SpreadKind, baseline_p_value
from poolbisect.evidence.comparability import BaselineKey, FieldDifference, differing_fields
from poolbisect.evidence.gate_health import GateHealth, gate_health
from poolbisect.evidence.gates import Gate as ScoreGate
from poolbisect.evidence.gates import GateCheck, check_gate
from poolbisect.measurement import Measurement
from poolbisect.scenario import Scenario, TomlTable, read_toml, scenario_folder
from poolbisect.tasks.arithmetic import HARNESS_VERSION

Fraction = Annotated[float, Meta(ge=0, le=1)]
MINIATURE = "miniature"
SMALLEST_DROP = 0.01


class BaselineSpread(StrEnum):
    """What the "±" of a baseline is."""

    RUN_TO_RUN = "run-to-run"
    """Standard deviation between runs on the same questions and machine."""
    BINOMIAL = "binomial"
    """Sampling error sqrt(p (1 - p) / n) of drawing the questions."""
    BETWEEN_MACHINES = "between-machines"
    """Standard deviation between machines, runs on one being alike."""


class Gate(TomlTable, frozen=True):
    """A pass mark; `strict` means the score must be above it, not merely reach it."""

    score: Fraction
    strict: bool = False
    accept_length: float | None = None

    def __str__(self) -> str:
        return str(self.of_score)

    @property
    def of_score(self) -> ScoreGate:
        return ScoreGate(self.score, self.strict)


class Former(TomlTable, frozen=True):
    """What a baseline said before a change."""

    mean: Fraction
    spread: Fraction
    spread_kind: BaselineSpread
    source: str
    runs: Annotated[int, Meta(ge=2)] | None = None
    accept_length: float | None = None
    gate: Gate | None = None


class Change(TomlTable, frozen=True):
    """Why a baseline was set or changed, and when (ISO date); `former` is what it said before."""

    date: str
    reason: str
    former: Former | None = None


class Baseline(TomlTable, frozen=True):
    """One recorded score. `spread-kind` says what `spread` is: run-to-run or binomial."""

    name: str
    model: str
    task: str
    n: Annotated[int, Meta(ge=1)]
    shots: Annotated[int, Meta(ge=0)]
    sampling: str
    hardware: str
    engine_mode: str
    harness_version: str
    mean: Fraction
    spread: Fraction
    spread_kind: BaselineSpread
    source: str
    changes: list[Change]
    runs: Annotated[int, Meta(ge=2)] | None = None
    accept_length: float | None = None
    gate: Gate | None = None

    @property
    def key(self) -> BaselineKey:
        return BaselineKey(
            model=self.model,
            task=self.task,
            n=self.n,
            shots=self.shots,
            sampling=self.sampling,
            hardware=self.hardware,
            engine_mode=self.engine_mode,
            harness_version=self.harness_version,
        )

    @property
    def recorded(self) -> BaselineScore:
        """Mean and spread, for the statistics."""
        binomial = self.spread_kind == BaselineSpread.BINOMIAL
        kind = SpreadKind.BINOMIAL if binomial else SpreadKind.RUN_TO_RUN
        return BaselineScore(self.mean, self.spread, self.runs, kind)

    def check(self, score: float) -> GateCheck | None:
        """Whether a score passes the gate; None without a gate."""
        return None if self.gate is None else check_gate(score, self.gate.of_score)

    def health(self) -> GateHealth | None:
        """Whether the gate is any use, given mean and spread; None without a gate."""
        if self.gate is None:
            return None
        return gate_health(self.mean, self.spread, self.gate.of_score, questions=self.n)


class _BaselineFile(TomlTable, frozen=True):
    baselines: list[Baseline]


def load_baselines(scenario: str, folder: Path | None = None) -> list[Baseline]:
    """The baselines recorded for a scenario; none if it has no file."""
    return read_baselines(baseline_file(scenario, folder))


def baseline_file(scenario: str, folder: Path | None = None) -> Path:
    """Where the baselines of a scenario are: in `folder`, by default with the scenarios."""
    return (folder or scenario_folder() / "baselines") / f"{scenario}.toml"


def read_baselines(path: Path) -> list[Baseline]:
    """The baselines of one file; none if it does not exist. UsageError names file and key."""
    if not path.exists():
        return []
    file: _BaselineFile = read_toml(path, _BaselineFile)
    return file.baselines


def run_key(scenario: Scenario, questions: int, device: str) -> BaselineKey:
    """The key of a miniature run of `scenario` over `questions` questions."""
    workload, flags = scenario.workload, scenario.engine
    mode = "plain"
    if flags.speculative_algorithm is not None:
        mode = f"{flags.speculative_algorithm.lower()}-{flags.speculative_num_steps}"
    return BaselineKey(
        model=f"{workload.model}-miniature",
        task=workload.task,
        n=questions,
        shots=workload.shots,
        sampling="greedy" if workload.temperature == 0 else f"temperature {workload.temperature}",
        hardware=f"{MINIATURE}-{device}",
        engine_mode=f"{mode} dp{flags.dp_size}",
        harness_version=HARNESS_VERSION,
    )


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """How a run stands to its baseline; `fell` if it is significantly below it.

    `gate` is judged apart: a score can pass its gate and still have fallen.
    """

    note: str
    fell: bool = False
    baseline: Baseline | None = None
    gate: GateCheck | None = None


def compare_with_baseline(
    measurement: Measurement, key: BaselineKey, baselines: list[Baseline], alpha: float
) -> BaselineComparison:
    """Compare a measured accuracy with the first baseline whose key agrees with `key`.

    It `fell` if the score is improbable under the recorded spread and a point or more lower.
    """
    closest: tuple[FieldDifference, ...] | None = None
    for baseline in baselines:
        differing = differing_fields(baseline.key, key)
        if not differing:
            return _against(measurement, baseline, alpha)
        if closest is None or len(differing) < len(closest):
            closest = differing
    if closest is None:
        return BaselineComparison("no baseline is recorded")
    fields = "; ".join(map(str, closest))
    return BaselineComparison(f"not comparable with its recorded baseline ({fields})")


def _against(measurement: Measurement, baseline: Baseline, alpha: float) -> BaselineComparison:
    accuracy = measurement.accuracy or 0.0
    drop = baseline.mean - accuracy
    fell = drop >= SMALLEST_DROP and baseline_p_value(accuracy, baseline.recorded) < alpha
    relation = "below" if fell else "in line with"
    check = baseline.check(accuracy)
    note = (
        f"accuracy is {relation} its baseline {baseline.mean:.3f} ± {baseline.spread:.4f} "
        f"({baseline.spread_kind}, {baseline.name}){gate_note(baseline, check)}"
    )
    return BaselineComparison(note, fell, baseline, check)


def gate_note(baseline: Baseline, check: GateCheck | None) -> str:
    """How a score stands to the gate of its baseline, to be put after a sentence; may be empty."""
    if check is None:
        return ""
    if check.note:
        return f"; {check.note}"
    return f"; it {'passes' if check.passed else 'fails'} its gate {baseline.gate}"
