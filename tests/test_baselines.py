"""Recorded baselines: compared only where every field of the key agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from poolbisect.baselines import (
    Baseline,
    BaselineComparison,
    compare_with_baseline,
    load_baselines,
    run_key,
)
from poolbisect.errors import UsageError
from poolbisect.evidence.comparability import BaselineKey
from poolbisect.measurement import Measurement
from poolbisect.scenario import load_scenario, scenario_names
from poolbisect.tasks.arithmetic import HARNESS_VERSION

Make = Callable[..., Measurement]
ALPHA = 0.001
HARDWARE = f"""\
[[baselines]]
name = "upstream, 8 x H200"
model = "XiaomiMiMo/MiMo-V2-Flash"
task = "gsm8k"
n = 1319
shots = 5
sampling = "greedy"
hardware = "8 x H200"
engine-mode = "eagle-3 dp2"
harness-version = "{HARNESS_VERSION}"
mean = 0.776
spread = 0.011
spread-kind = "run-to-run"
source = "upstream's nightly"
accept-length = 3.2

[baselines.gate]
score = 0.75

[[baselines.changes]]
date = "2026-04-01"
reason = "first recorded"
"""


@pytest.fixture(scope="module")
def key() -> BaselineKey:
    return run_key(load_scenario("mimo-canary"), 1319, "cpu")


@pytest.fixture(scope="module")
def recorded(key: BaselineKey, tmp_path_factory: pytest.TempPathFactory) -> Baseline:
    """A baseline of the very run that `key` describes, read from a file."""
    folder = tmp_path_factory.mktemp("baselines")
    (folder / "mine.toml").write_text(
        HARDWARE.replace("XiaomiMiMo/MiMo-V2-Flash", str(key.model))
        .replace('name = "upstream, 8 x H200"', 'name = "miniature"')
        .replace("gsm8k", str(key.task))
        .replace("shots = 5", f"shots = {key.shots}")
        .replace('"8 x H200"', f'"{key.hardware}"')
    )
    (baseline,) = load_baselines("mine", folder)
    return baseline


def compared(
    measured: Make, accuracy: float, key: BaselineKey, *baselines: Baseline
) -> BaselineComparison:
    asked = 10_000
    wrong = range(round((1 - accuracy) * asked))
    return compare_with_baseline(measured("s", asked, wrong=wrong), key, list(baselines), ALPHA)


def test_a_file_is_read_with_every_field(tmp_path: Path) -> None:
    (tmp_path / "canary.toml").write_text(HARDWARE)
    (baseline,) = load_baselines("canary", tmp_path)
    assert baseline.key == BaselineKey(
        "XiaomiMiMo/MiMo-V2-Flash",
        "gsm8k",
        1319,
        5,
        "greedy",
        "8 x H200",
        "eagle-3 dp2",
        HARNESS_VERSION,
    )
    assert (baseline.mean, baseline.spread, baseline.accept_length) == (0.776, 0.011, 3.2)
    assert baseline.gate is not None
    assert (baseline.gate.score, baseline.gate.strict) == (0.75, False)
    assert [change.reason for change in baseline.changes] == ["first recorded"]


def test_a_scenario_without_a_file_has_no_baseline(tmp_path: Path, measured: Make) -> None:
    assert load_baselines("none", tmp_path) == []
    comparison = compare_with_baseline(measured("s"), BaselineKey(*[None] * 8), [], ALPHA)
    assert comparison == BaselineComparison("no baseline is recorded")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("spread = 0.011", "spraed = 0.011", "spraed"),
        ("mean = 0.776", "mean = 77.6", "mean"),
        ("mean = 0.776", "mean = nan", "mean"),
        ("n = 1319", "n = -1", "n"),
        ("n = 1319", "n = 1319\nruns = 1", "runs"),
        ('reason = "first recorded"', "", "reason"),
        ("score = 0.75", "score = 75", "gate"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, old: str, new: str, named: str) -> None:
    path = tmp_path / "canary.toml"
    path.write_text(HARDWARE.replace(old, new))
    with pytest.raises(UsageError) as raised:
        load_baselines("canary", tmp_path)
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    assert named in message.replace(str(path), "")


@pytest.mark.parametrize("scenario", scenario_names())
def test_every_shipped_baseline_says_why_it_was_set(scenario: str) -> None:
    for baseline in load_baselines(scenario):
        assert baseline.changes
        assert all(change.reason and change.date for change in baseline.changes)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "other"),
        ("task", "gsm8k"),
        ("n", 200),
        ("shots", 3),
        ("sampling", "temperature 0.6"),
        ("hardware", "miniature-cuda"),
        ("engine_mode", "plain dp2"),
        ("harness_version", "0"),
    ],
)
def test_a_differing_field_is_named_and_nothing_is_concluded(
    measured: Make, key: BaselineKey, recorded: Baseline, field: str, value: Any
) -> None:
    other = replace(key, **{field: value})
    comparison = compared(measured, 0.1, other, recorded)
    assert (comparison.fell, comparison.baseline) == (False, None)
    assert "not comparable" in comparison.note
    assert f"{field}: baseline {getattr(key, field)}, run {value}" in comparison.note
    assert comparison.note.count("baseline") == 2, "no other field is named"


def test_upstreams_hardware_figure_is_never_compared_with_the_miniature(
    measured: Make, key: BaselineKey, tmp_path: Path
) -> None:
    (tmp_path / "canary.toml").write_text(HARDWARE)
    comparison = compared(measured, 0.1, key, *load_baselines("canary", tmp_path))
    assert (comparison.fell, comparison.baseline) == (False, None)
    for word in ("hardware", "8 x H200", "miniature-cpu", "model", "task", "shots"):
        assert word in comparison.note


def test_of_several_the_comparable_one_is_taken_and_else_the_closest_is_named(
    measured: Make, key: BaselineKey, recorded: Baseline, tmp_path: Path
) -> None:
    (tmp_path / "canary.toml").write_text(HARDWARE)
    (hardware,) = load_baselines("canary", tmp_path)
    assert compared(measured, 0.776, key, hardware, recorded).baseline == recorded
    fewer = replace(key, n=200)
    for order in ([hardware, recorded], [recorded, hardware]):
        note = compared(measured, 0.776, fewer, *order).note
        assert "n: baseline 1319, run 200" in note
        assert "hardware" not in note


@pytest.mark.parametrize(
    ("mean", "spread", "accuracy", "fell"),
    [
        (0.776, 0.011, 0.720, True),
        (0.776, 0.011, 0.776, False),
        (0.776, 0.011, 0.760, False),
        (0.776, 0.011, 0.850, False),
        (0.776, 0.0001, 0.770, False),
        (0.776, 0.0001, 0.765, True),
        (0.776, 0.0, 0.765, True),
        (0.776, 0.0, 0.770, False),
        (0.776, 0.0, 0.800, False),
    ],
)
def test_a_score_fell_if_it_is_improbable_and_a_point_lower(
    measured: Make,
    key: BaselineKey,
    recorded: Baseline,
    mean: float,
    spread: float,
    accuracy: float,
    fell: bool,
) -> None:
    baseline = msgspec.structs.replace(recorded, mean=mean, spread=spread)
    comparison = compared(measured, accuracy, key, baseline)
    assert comparison.fell is fell
    assert ("below" in comparison.note) is fell
    assert baseline.name in comparison.note
    assert "run-to-run" in comparison.note


def test_a_spread_from_few_runs_is_trusted_less(
    measured: Make, key: BaselineKey, recorded: Baseline
) -> None:
    """0.72 is 5 standard deviations down: improbable, unless three runs are all there is."""
    few = msgspec.structs.replace(recorded, runs=3)
    many = msgspec.structs.replace(recorded, runs=61)
    assert not compared(measured, 0.72, key, few).fell
    assert compared(measured, 0.72, key, many).fell


def test_a_binomial_spread_needs_no_runs_to_be_known(
    measured: Make, key: BaselineKey, recorded: Baseline
) -> None:
    """Its size follows from n, so the number of runs takes nothing from it."""
    binomial = msgspec.structs.replace(recorded, runs=3, spread_kind="binomial")
    assert compared(measured, 0.72, key, binomial).fell


def test_a_run_is_keyed_by_all_that_may_change_a_score() -> None:
    scenario = load_scenario("mimo-canary")
    assert run_key(scenario, 200, "cuda") == BaselineKey(
        "mimo-miniature",
        "arithmetic-1319",
        200,
        0,
        "greedy",
        "miniature-cuda",
        "eagle-3 dp2",
        HARNESS_VERSION,
    )
    sampled = msgspec.structs.replace(
        scenario, workload=msgspec.structs.replace(scenario.workload, temperature=0.6)
    )
    assert run_key(sampled, 200, "cuda").sampling == "temperature 0.6"
    plain = msgspec.structs.replace(
        scenario, engine=msgspec.structs.replace(scenario.engine, speculative_algorithm=None)
    )
    assert run_key(plain, 200, "cuda").engine_mode == "plain dp2"
