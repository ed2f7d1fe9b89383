"""`bisect --config --probe command`: real processes, real files, the whole way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from poolbisect.cli import group
from poolbisect.errors import UsageError

PROGRAM = """
import json, os, sys, time
count = open("launches.txt", "a")
count.write(json.dumps([sys.argv[1:], os.environ.get("FAST_PATH")]) + "\\n")
count.close()
bad = "--overlap" in sys.argv and os.environ.get("FAST_PATH") == "1"
if "--refused" in sys.argv and "--needs" not in sys.argv:
    sys.exit(125)
print("Accuracy:", 0.70 if bad else 0.78)
if os.path.exists("stop-here") and bad:
    print("stopped", flush=True)
    time.sleep(600)
"""
SWITCHES = [
    *("--switch", "overlap=false:true", "--switch", "FAST_PATH=0:1"),
    *("--switch", "page-size=1:64", "--switch", "a=false:true", "--switch", "b=false:true"),
    *("--switch", "c=1:2", "--switch", "MODE=none:x", "--switch", "d=false:true"),
]


def _argv(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "poolbisect", "bisect", "--config", *arguments]


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, "FAST_PATH": "unset"}


def _run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        _argv("--json", *arguments), cwd=folder, env=_environment(), capture_output=True, text=True
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def _with_command(*options: str) -> list[str]:
    program = [sys.executable, "program.py", "{switches}"]
    return [*("--probe", "command"), *options, "--", *program]


def test_a_planted_pair_of_a_flag_and_a_variable_is_found_in_few_launches(tmp_path: Path) -> None:
    code, document, _ = _run(tmp_path, *_with_command(*SWITCHES, "--asked", "1000"))
    assert code == document["exit_code"] == 0
    assert document["schema"] == "poolbisect.config-bisect/1"
    assert document["culprit"] == ["overlap", "FAST_PATH"]
    launched = (tmp_path / "launches.txt").read_text().splitlines()
    assert document["launch_count"] == len(launched) <= 14
    assert json.loads(launched[0]) == [["--page-size", "1", "--c", "1"], "0"]
    assert document["confirmation"]["again"]["verdict"] == "bad"
    assert {one["verdict"] for one in document["confirmation"]["without"].values()} == {"good"}
    report = Path(tmp_path, document["report"])
    assert json.loads((report / "result.json").read_text()) == document
    assert "make it bad" in (report / "report.md").read_text()
    assert all((report / one["log"]).is_file() for one in document["launches"])


def test_a_combination_the_command_skips_is_never_blamed(tmp_path: Path) -> None:
    switches = [
        *("--switch", "refused=false:true", "--switch", "overlap=false:true"),
        *("--switch", "FAST_PATH=0:1", "--switch", "needs=false:true"),
    ]
    code, document, _ = _run(tmp_path, *_with_command(*switches, "--asked", "1000"))
    assert code == 0
    assert document["culprit"] == ["overlap", "FAST_PATH"]
    assert "untestable" in {one["verdict"] for one in document["launches"]}


def test_exit_statuses_judge_where_there_is_no_score(tmp_path: Path) -> None:
    code, document, _ = _run(
        tmp_path, *("--probe", "command"), *("--switch", "A=0:1", "--switch", "B=0:1"),
        *("--", "sh", "-c", 'test "$B" = 0'),
    )  # fmt: skip
    assert (code, document["culprit"]) == (0, ["B"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (_with_command("--switch", "x=false:true"), "of an unknown number of questions"),
        (["--probe", "command", "--switch", "x=1:2", "--", "true"], "does not get --x"),
        (["--probe", "command", "--switch", "X=1:2"], "needs a command"),
        (["--probe", "command", "--scenario", "mimo-canary", "--", "true"], "--scenario is not"),
        (["--probe", "command", "--flaky", "--", "true"], "give --noise instead"),
        (["--scenario", "mimo-canary", "--", "true"], "only --probe command takes a command"),
        (["--scenario", "mimo-canary", "--threshold", "0.7"], "--threshold is for --probe command"),
        (["--scenario", "mimo-canary", "--gate", "0.7"], "--gate is not for --probe miniature"),
        (["--scenario", "mimo-canary", "--model", "m"], "--model is for --probe server"),
        (["--scenario", "mimo-canary", "--without", "x"], "--without x: the switches are"),
        (["--scenario", "mimo-canary", "--noise", "0.2", "--repeats", "2"], "lead of 4"),
        (["--scenario", "mimo-canary-control"], "say which to launch with --subject"),
        (["--scenario", "mimo-v2-flash"], "--probe server"),
        (["--scenario", "mimo-v2-flash", "--probe", "server", "--subject", "installed"], "--eval"),
        (["--scenario", "mimo-v2-flash", "--probe", "server", "--subject", "installed",
          "--concurrency", "4"], "what the switch concurrency sets"),
        (["--resume"], "there is no configuration bisect below"),
        (["--resume", "--questions", "3"], "--questions is kept by the session"),
        ([], "--config needs --scenario"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    result = CliRunner().invoke(group, ["bisect", "--config", *arguments], standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""


def test_killed_and_resumed_it_repeats_one_launch_at_most(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "stop-here").touch()
    process = subprocess.Popen(
        _argv(*_with_command(*SWITCHES, "--asked", "1000")),
        cwd=tmp_path, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    launches = tmp_path / "launches.txt"
    while len(launches.read_text().splitlines() if launches.exists() else []) < 2:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    (tmp_path / "stop-here").unlink()
    code, document, _ = _run(tmp_path, "--resume")
    assert (code, document["culprit"]) == (0, ["overlap", "FAST_PATH"])
    total = len(launches.read_text().splitlines())
    assert total <= document["launch_count"] + 1
