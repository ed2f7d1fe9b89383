"""`poolbisect baseline`: what is listed, what is refused, and what history keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.baselines import load_baselines
from poolbisect.cli import main

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["poolbisect", "baseline", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return call


def run(folder: Path, right: int, asked: int = 1000, **more: Any) -> Path:
    """A run folder whose reference has `right` of `asked` right."""
    folder.mkdir(parents=True)
    result = {
        "subject": "corrected",
        "ended": "measured",
        "asked": asked,
        "answered": asked,
        "correct": right,
        "accuracy": right / asked,
        "accept_length": 3.4,
        "provenance": {"device": "cpu"},
    }
    workload = {"task": "arithmetic-1319", "model": "mimo", "shots": 0, "temperature": 0.0}
    document = {
        "schema": "poolbisect.run/1",
        "scenario": "mimo-canary",
        "reference": "corrected",
        "results": [result | more, result | {"subject": "original", "correct": 0, "accuracy": 0}],
        "configuration": {"workload": workload, "engine": {"dp-size": 2}},
    }
    (folder / "result.json").write_text(json.dumps(document))
    return folder


def test_a_run_is_recorded_with_its_full_key(cli: Cli, tmp_path: Path) -> None:
    one = run(tmp_path / "one", 776)
    code, out, _ = cli("record", one, "--reason", "first", "--gate", 0.75, "--baselines", tmp_path)
    assert code == 0
    (baseline,) = load_baselines("mimo-canary", tmp_path)
    assert str(tmp_path / "mimo-canary.toml") in out
    assert (baseline.mean, baseline.n, baseline.hardware) == (0.776, 1000, "miniature-cpu")
    assert baseline.spread_kind == "binomial"
    assert baseline.spread == pytest.approx((0.776 * 0.224 / 1000) ** 0.5, abs=1e-6)
    assert [change.reason for change in baseline.changes] == ["first"]


def test_no_reason_no_baseline(cli: Cli, tmp_path: Path) -> None:
    one = run(tmp_path / "one", 776)
    for reason in ((), ("--reason", ""), ("--reason", "  ")):
        code, _, err = cli("record", one, *reason, "--baselines", tmp_path)
        assert code == 2
        assert "reason" in err
    assert load_baselines("mimo-canary", tmp_path) == []


def test_a_new_baseline_keeps_what_the_old_one_said(cli: Cli, tmp_path: Path) -> None:
    one, two, three = (run(tmp_path / f"run{n}", n) for n in (776, 770, 782))
    cli("record", one, "--reason", "first", "--gate", 0.75, "--strict", "--baselines", tmp_path)
    path = tmp_path / "mimo-canary.toml"
    path.write_text("# why these figures: see the nightly\n" + path.read_text())
    assert cli("record", one, two, three, "--reason", "weights", "--baselines", tmp_path)[0] == 0
    (baseline,) = load_baselines("mimo-canary", tmp_path)
    assert (baseline.mean, baseline.spread, baseline.runs) == (0.776, 0.006, 3)
    assert baseline.spread_kind == "run-to-run"
    assert baseline.gate is not None
    assert baseline.gate.strict
    first, second = baseline.changes
    assert (first.reason, first.former) == ("first", None)
    assert second.reason == "weights"
    assert second.former is not None
    assert (second.former.mean, second.former.spread_kind) == (0.776, "binomial")
    assert path.read_text().startswith("# why these figures")


def test_the_same_runs_write_the_same_file(cli: Cli, tmp_path: Path) -> None:
    one = run(tmp_path / "one", 776)
    texts = []
    for name in ("a", "b"):
        cli("record", one, "--reason", "first", "--baselines", tmp_path / name)
        texts.append((tmp_path / name / "mimo-canary.toml").read_bytes())
    assert texts[0] == texts[1]


def test_another_key_is_another_baseline(cli: Cli, tmp_path: Path) -> None:
    cli("record", run(tmp_path / "a", 776), "--reason", "r", "--baselines", tmp_path)
    gpu = run(tmp_path / "b", 770, provenance={"device": "cuda"})
    assert cli("record", gpu, "--reason", "gpu", "--baselines", tmp_path)[0] == 0
    assert [b.name for b in load_baselines("mimo-canary", tmp_path)] == [
        "miniature-cpu",
        "miniature-cuda",
    ]


@pytest.mark.parametrize(
    ("more", "code", "named"),
    [
        ({"ended": "partial"}, 4, "partial"),
        ({"ended": "infra", "answered": 0, "correct": 0, "accuracy": None}, 4, "infra"),
        ({"answered": 960, "accuracy": 776 / 960}, 4, "lost 40 of 1000"),
        ({"accuracy": 0.5}, 2, "accuracy 0.5 is not 776 of 1000"),
    ],
)
def test_what_is_no_whole_score_is_not_recorded(
    cli: Cli, tmp_path: Path, more: dict[str, Any], code: int, named: str
) -> None:
    one = run(tmp_path / "one", 776, **more)
    ended, _, err = cli("record", one, "--reason", "r", "--baselines", tmp_path)
    assert ended == code
    assert named in err
    assert load_baselines("mimo-canary", tmp_path) == []


def test_one_run_given_twice_is_no_spread(cli: Cli, tmp_path: Path) -> None:
    one = run(tmp_path / "one", 776)
    code, _, err = cli("record", one, one, "--reason", "r", "--baselines", tmp_path)
    assert code == 2
    assert "given twice" in err


def test_scores_from_elsewhere_need_the_key_they_do_not_say(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "night.log"
    log.write_text("answered 1319 of 1319\nScore: 0.776\n")
    arguments = ["record", log, "--scenario", "mimo-canary", "--reason", "r", "--baselines"]
    code, _, err = cli(*arguments, tmp_path)
    assert code == 2
    assert "--key model=" in err
    fields = ["model=m", "task=gsm8k", "shots=5", "sampling=greedy", "hardware=8 x H200"]
    fields += ["engine-mode=eagle-3 dp2", "harness-version=1"]
    keys = [word for field in fields for word in ("--key", field)]
    assert cli(*arguments, tmp_path, *keys)[0] == 0
    (baseline,) = load_baselines("mimo-canary", tmp_path)
    assert (baseline.hardware, baseline.shots, baseline.n) == ("8 x H200", 5, 1319)


ENTRY = """\
[[baselines]]
name = "{name}"
model = "m"
task = "gsm8k"
n = 200
shots = 5
sampling = "greedy"
hardware = "h"
engine-mode = "e"
harness-version = "1"
mean = {mean}
spread = {spread}
spread-kind = "run-to-run"
source = "s"
gate = {{ score = {gate}, strict = {strict} }}
changes = [{{ date = "2026-05-01", reason = "first" }}]

"""


def test_noisy_and_dead_gates_are_listed(cli: Cli, tmp_path: Path) -> None:
    rows = [
        ("noisy", 0.860, 0.009, 0.85, "true"),
        ("always", 0.855, 0.001, 0.86, "false"),
        ("never", 0.584, 0.010, 0.38, "false"),
        ("sound", 0.860, 0.009, 0.80, "false"),
    ]
    keys = ("name", "mean", "spread", "gate", "strict")
    text = "".join(ENTRY.format(**dict(zip(keys, row, strict=True))) for row in rows)
    (tmp_path / "gates.toml").write_text(text)
    code, out, _ = cli("list", "gates", "--baselines", tmp_path, "--json")
    assert code == 0
    listed = {one["name"]: one["gate-health"] for one in json.loads(out)["baselines"]}
    assert listed["noisy"]["faults"] == ["noisy"]
    assert listed["noisy"]["false-fail-rate"] == pytest.approx(12.3 / 61, abs=1e-3)
    assert listed["noisy"]["suggested"] == {"value": 0.825, "strict": True}
    assert listed["always"]["faults"] == ["always fails"]
    assert listed["never"]["faults"] == ["never fails"]
    assert listed["sound"]["faults"] == []
    _, out, _ = cli("list", "gates", "--baselines", tmp_path)
    assert "20.2% false fails; > 0.825 would hold" in " ".join(out.split())


def test_a_broken_file_is_named_and_the_others_are_listed(cli: Cli, tmp_path: Path) -> None:
    good = ENTRY.format(name="fine", mean=0.8, spread=0.01, gate=0.7, strict="false")
    (tmp_path / "fine.toml").write_text(good)
    broken = tmp_path / "broken.toml"
    broken.write_text(good[:80])
    code, out, err = cli("list", "--baselines", tmp_path, "--json")
    assert code == 2
    assert str(broken) in err
    assert [one["name"] for one in json.loads(out)["baselines"]] == ["fine"]
    before = broken.read_bytes()
    one = run(tmp_path / "one", 776)
    arguments = ("record", one, "--scenario", "broken", "--reason", "r", "--baselines", tmp_path)
    assert cli(*arguments)[0] == 2
    assert broken.read_bytes() == before
