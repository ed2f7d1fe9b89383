"""The commands that launch servers: run, and a bisect that is killed and resumed."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from poolbisect.cli import main
from poolbisect.probes.command.tree import MARK

HERE = Path(__file__).parent
STAND_IN = HERE / "stand_in" / "server.py"
ROOT = HERE.parents[2]


def small_sglang() -> Any:
    spec = importlib.util.spec_from_file_location("small_sglang", HERE / "small_sglang.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POOLBISECT_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("POOLBISECT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def poolbisect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run a command; its exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        out = ("--out", str(tmp_path / "reports"))
        monkeypatch.setattr(sys, "argv", ["poolbisect", *arguments, *out])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    return call


def stand_in(*flags: str) -> tuple[str, ...]:
    command = ("{python}", str(STAND_IN), "--port", "{port}", "{flags}", *flags)
    return ("--probe", "server", "--model", "m", "--server-command", shlex.join(command))


def test_run_asks_a_server_and_keeps_what_ran(
    poolbisect: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, out, _ = poolbisect("run", "mimo-canary", *stand_in(), "--questions", "30", "--json")
    document = json.loads(out)
    assert code == document["exit_code"] == 4  # nothing vouches for the score of one server
    (result,) = document["results"]
    assert (result["subject"], result["accuracy"], result["answered"]) == ("installed", 1.0, 30)
    assert result["provenance"]["command"][1] == str(STAND_IN)
    (log,) = (tmp_path / "reports").rglob("server.log")
    assert "Uvicorn running" in log.read_text()


def test_run_says_why_there_is_no_score(
    poolbisect: Callable[..., tuple[int, str, str]],
) -> None:
    arguments = ("run", "mimo-canary", *stand_in("--fault", "errors"), "--questions", "50")
    code, out, _ = poolbisect(*arguments)
    assert code == 3
    assert "40 of 50 questions were not answered: HTTP 500" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "mimo-v2-flash"), "add --probe server"),
        (("run", "mimo-v2-flash", "--probe", "server"), "give its questions with --eval"),
        (("run", "mimo-canary", "--probe", "server"), "poolbisect export-model DIR"),
        (("run", "mimo-canary", "--port", "1"), "--port is for --probe server"),
        (
            ("run", "mimo-canary", "--probe", "server", "--model", "m", "--subject", "original"),
            "'original' is nothing to launch",
        ),
        (
            ("run", "mimo-canary", "--probe", "server", "--server-command", "a '{port}"),
            "close the quotes",
        ),
    ],
)
def test_what_is_missing_is_said_before_anything_is_launched(
    poolbisect: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], words: str
) -> None:
    code, _, err = poolbisect(*arguments)
    assert code == 2
    assert words in " ".join(err.split())
    assert len(err.strip().splitlines()) == 1


def test_a_bisect_killed_in_mid_run_is_resumed_and_leaves_nothing(
    builder: Any, poolbisect: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    small = small_sglang()
    first = builder.commit("start", small.files())
    for number in range(3):
        builder.commit(f"good {number}", {"notes.md": str(number)})
    culprit = builder.commit("the bug", {"python/sglang/arithmetic.py": small.BAD})
    for number in range(3):
        last = builder.commit(f"bad {number}", {"notes.md": f"b{number}"})
    arguments = ["bisect", "--probe", "server", "--model", "m", "--repo", str(builder.folder)]
    arguments += ["--good", first, "--bad", last, "--no-timeline", "--isolation", "given"]
    arguments += ["--out", str(tmp_path / "reports")]
    tool = subprocess.Popen(
        [sys.executable, "-m", "poolbisect", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for_answers(tmp_path / "reports", tool, attempts=2)
    below = psutil.Process(tool.pid).children(recursive=True)
    tool.kill()
    tool.wait()
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []
    code, out, _ = poolbisect("bisect", "--resume", "--json")
    document = json.loads(out)
    assert code == 0, document["reason"]
    assert document["culprit"]["commit"] == culprit
    assert not [p for p in psutil.process_iter() if _is_marked(p, tmp_path)]


def _wait_for_answers(folder: Path, tool: subprocess.Popen[bytes], attempts: int) -> None:
    """Until so many attempts have answers, and a server runs."""
    while len(list(folder.rglob("answers.jsonl"))) < attempts:
        assert tool.poll() is None, "the bisect ended before it could be killed"
        try:
            tool.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue


def _is_marked(process: psutil.Process, folder: Path) -> bool:
    try:
        environment = process.environ()
    except (psutil.Error, OSError):
        return False
    return MARK in environment and environment.get("PYTEST_OF") == str(folder)
