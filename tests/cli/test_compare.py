"""`poolbisect compare`: files in, verdict and exit code out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbisect.cli import main


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        words = ["poolbisect", "compare", *map(str, arguments)]
        self._monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    def json(self, *arguments: object) -> dict[str, Any]:
        code, out, _ = self(*arguments, "--json")
        document: dict[str, Any] = json.loads(out)
        assert document["exit_code"] == code
        assert document["schema"] == "poolbisect.compare/1"
        return document


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


def write(path: Path, right: list[bool]) -> Path:
    lines = [json.dumps({"id": n, "correct": value}) for n, value in enumerate(right)]
    path.write_text("\n".join(lines) + "\n")
    return path


def cells(folder: Path, both: int, lost: int, gained: int, neither: int) -> tuple[Path, Path]:
    before = [True] * (both + lost) + [False] * (gained + neither)
    after = [True] * both + [False] * lost + [True] * gained + [False] * neither
    return write(folder / "a.jsonl", before), write(folder / "b.jsonl", after)


@pytest.mark.parametrize(
    ("lost", "gained", "p"), [(17, 3, 0.0026), (14, 3, 0.0127), (11, 0, 0.00098)]
)
def test_paired_files(cli: Cli, tmp_path: Path, lost: int, gained: int, p: float) -> None:
    document = cli.json(*cells(tmp_path, 155 - lost, lost, gained, 45 - gained))
    assert document["paired"]
    assert (document["n"], document["lost"], document["gained"]) == (200, lost, gained)
    assert document["p_value"] == pytest.approx(p, rel=0.02)
    assert document["difference"] == pytest.approx((gained - lost) / 200)
    assert document["interval"][0] < document["difference"] < document["interval"][1] < 0
    assert (document["verdict"], document["exit_code"]) == ("regression", 1)
    assert len(document["lost_questions"]) == lost


def test_printed_outputs_with_their_intervals(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("Score: 0.776\n")
    (tmp_path / "b.log").write_text("Accuracy: 0.720\n")
    document = cli.json(tmp_path / "a.log", tmp_path / "b.log", "--asked", 1319)
    assert not document["paired"]
    assert (document["before"]["correct"], document["after"]["correct"]) == (1024, 950)
    for side, interval in (("before", (0.753, 0.798)), ("after", (0.695, 0.744))):
        assert document[side]["interval"] == pytest.approx(interval, abs=5e-4)
    assert document["p_value"] == pytest.approx(0.0009, abs=5e-5)
    assert document["exit_code"] == 1
    (tmp_path / "c.log").write_text("Score: 0.775\n")
    fewer = cli.json(tmp_path / "c.log", tmp_path / "b.log", "--asked", 200)
    assert (fewer["verdict"], fewer["exit_code"]) == ("inconclusive", 4)
    assert fewer["before"]["interval"] == pytest.approx((0.712, 0.827), abs=5e-4)
    assert fewer["after"]["interval"] == pytest.approx((0.654, 0.778), abs=5e-4)
    assert fewer["questions_needed"] > 1000


def test_a_run_without_questions_is_not_comparable_rather_than_zero(
    cli: Cli, tmp_path: Path
) -> None:
    before, _ = cells(tmp_path, 155, 0, 0, 45)
    lines = [{"id": n, "correct": n < 124 if n < 160 else None} for n in range(200)]
    after = tmp_path / "infra.jsonl"
    after.write_text("\n".join(map(json.dumps, lines)))
    document = cli.json(before, after)
    assert (document["verdict"], document["exit_code"]) == ("not_comparable", 4)
    assert document["after"]["score"] == 0.775
    assert document["p_value"] is None


def test_a_file_at_fault_is_one_sentence_on_stderr(cli: Cli, tmp_path: Path) -> None:
    before, _ = cells(tmp_path, 155, 0, 0, 45)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": 1, "correct": true}\n{"id": 2, "corr')
    code, out, err = cli(before, broken, "--json")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{broken}:2:" in err
    assert cli(before, tmp_path / "none.jsonl")[0] == 2


def run_folder(folder: Path, **answers: list[bool]) -> Path:
    folder.mkdir(parents=True)
    results = []
    for subject, right in answers.items():
        write(folder / f"{subject}.jsonl", right)
        results.append(
            {
                "subject": subject,
                "ended": "measured",
                "asked": len(right),
                "answered": len(right),
                "correct": sum(right),
                "accuracy": sum(right) / len(right),
                "accept_length": 3.2,
                "provenance": {"device": "cpu"},
            }
        )
    workload = {"task": "arithmetic-1319", "model": "mimo", "shots": 0, "temperature": 0.0}
    document = {
        "schema": "poolbisect.run/1",
        "scenario": "mimo-canary",
        "reference": "corrected",
        "results": results,
        "configuration": {"workload": workload, "engine": {"dp-size": 2}},
    }
    (folder / "result.json").write_text(json.dumps(document))
    return folder


def test_run_folders(cli: Cli, tmp_path: Path) -> None:
    good, bad = [True] * 155 + [False] * 45, [True] * 138 + [False] * 59 + [True] * 3
    run = run_folder(tmp_path / "one", corrected=good, original=bad)
    code, _, err = cli(run, run)
    assert code == 2
    assert "corrected, original" in err
    document = cli.json(run, run, "--subject", "corrected", "--subject", "original")
    assert (document["lost"], document["gained"], document["exit_code"]) == (17, 3, 1)
    assert document["before"]["facts"]["hardware"] == "miniature-cpu"
    _, out, _ = cli(run, run, "--subject", "corrected", "--subject", "original", "--show", "2")
    assert "17 lost, 3 gained" in " ".join(out.split())
    assert "and 15 more" in out
    write(run / "original.jsonl", bad[:-1])
    code, _, err = cli(run, run, "--subject", "original")
    assert code == 2
    assert "half-written" in err


def test_hostile_answers_reach_no_terminal(cli: Cli, tmp_path: Path) -> None:
    paths = []
    for name, right in (("a", True), ("b", False)):
        line = {"id": "q\x1b[2J", "correct": right, "text": f"\x1b]0;{name}\x07 \ud800 [bold]"}
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text(json.dumps(line))
    code, out, _ = cli(*paths)
    assert code == 4
    assert "\x1b" not in out
    assert "[bold]" in out
    document = cli.json(*paths)
    assert document["lost_questions"][0]["before"] == "\x1b]0;a\x07 \ud800 [bold]"


BASELINE = """\
[[baselines]]
name = "8 x H200"
model = "m"
task = "gsm8k"
n = 1319
shots = 5
sampling = "greedy"
hardware = "8 x H200"
engine-mode = "eagle-3 dp2"
harness-version = "lm-eval 0.4.9"
mean = {mean}
spread = {spread}
spread-kind = "run-to-run"
source = "nightly"
gate = {{ score = {gate}, strict = {strict} }}
changes = [{{ date = "2026-05-01", reason = "first" }}]
"""


def baseline(folder: Path, mean: float, spread: float, gate: float, strict: bool = False) -> Path:
    text = BASELINE.format(mean=mean, spread=spread, gate=gate, strict=str(strict).lower())
    (folder / "mimo.toml").write_text(text)
    return folder


def test_one_score_against_a_baseline(cli: Cli, tmp_path: Path) -> None:
    baseline(tmp_path, 0.776, 0.011, 0.75)
    (tmp_path / "night.log").write_text("Score: 0.72\n")
    arguments = ("baseline:mimo", tmp_path / "night.log", "--baselines", tmp_path)
    document = cli.json(*arguments)
    assert document["z"] == pytest.approx(-5.09, abs=5e-3)
    assert (document["verdict"], document["exit_code"]) == ("regression", 1)
    notes = " ".join(document["notes"])
    assert "taken as equal" in notes
    assert "fails its gate >= 0.75" in notes


def test_a_score_can_pass_its_gate_and_be_a_regression(cli: Cli, tmp_path: Path) -> None:
    baseline(tmp_path, 0.895, 0.007, 0.85)
    (tmp_path / "night.log").write_text("Score: 0.870\n")
    document = cli.json("baseline:mimo", tmp_path / "night.log", "--baselines", tmp_path)
    assert document["exit_code"] == 1
    assert "though it passes its gate" in document["reason"]


def test_a_score_equal_to_a_strict_gate_says_which_sign_decided(cli: Cli, tmp_path: Path) -> None:
    baseline(tmp_path, 0.860, 0.009, 0.85, strict=True)
    (tmp_path / "night.log").write_text("Score: 0.850\n")
    document = cli.json("baseline:mimo", tmp_path / "night.log", "--baselines", tmp_path)
    assert document["verdict"] != "regression"
    assert "fails at > 0.85 and would pass at >= 0.85" in " ".join(document["notes"])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n-shot": {"gsm8k": 3}}, "shots: 5 and 3"),
        ({"n-samples": {"gsm8k": {"effective": 200}}}, "n: 1319 and 200"),
        ({"lm_eval_version": "0.4.8"}, "harness_version: lm-eval 0.4.9 and lm-eval 0.4.8"),
        (
            {"configs": {"gsm8k": {"generation_kwargs": {"temperature": 0.6}}}},
            "sampling: greedy and temperature 0.6",
        ),
    ],
)
def test_a_baseline_of_another_key_is_not_comparable(
    cli: Cli, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    """A baseline of 5 shots says nothing about a run of 3."""
    baseline(tmp_path, 0.776, 0.011, 0.75)
    document = {
        "results": {"gsm8k": {"exact_match,none": 0.72}},
        "n-shot": {"gsm8k": 5},
        "model_name": "m",
        "lm_eval_version": "0.4.9",
        **change,
    }
    (tmp_path / "results.json").write_text(json.dumps(document))
    arguments = ("baseline:mimo", tmp_path / "results.json", "--baselines", tmp_path)
    report = cli.json(*arguments)
    assert (report["verdict"], report["exit_code"]) == ("not_comparable", 4)
    assert named in report["reason"]
    assert report["p_value"] is None
    assert cli("baseline:none", tmp_path / "results.json", "--baselines", tmp_path)[0] == 2
