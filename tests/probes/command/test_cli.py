"""`poolbisect bisect --probe command -- CMD`, from the command line to the answer."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start the command line in a folder, its cache and reports below `tmp_path`."""

    def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
        first, *rest = arguments
        return subprocess.Popen(
            [sys.executable, "-m", "poolbisect", first, "--out", str(tmp_path / "out"), *rest],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "POOLBISECT_CACHE": str(tmp_path / "cache"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def ended(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = started.communicate(timeout=120)
    return started.returncode, out, err


@pytest.mark.slow
def test_a_bisect_from_the_command_line(
    hostile: Any, cli: Any, tmp_path: Path, fingerprint: Callable[[Path], Any]
) -> None:
    before = fingerprint(hostile.folder)
    ends = ("--good", hostile.commits[0], "--bad", "main", "--probe", "command")
    command = ("--", "sh", "-c", "grep -q good state.txt")
    code, out, err = ended(cli(hostile.folder, "bisect", *ends, "--json", *command))
    assert code == 0, err
    document = json.loads(out)
    assert document["verdict"] == "culprit"
    assert document["culprit"]["commit"] == hostile.commits[3]
    assert document["probe"] == "command"
    log = document["steps"][0]["log"]
    folder = next((tmp_path / "out" / "bisect").iterdir())
    assert (folder / log).is_file()
    assert fingerprint(hostile.folder) == before
    assert not hostile.trace.exists()
    assert [path.name for path in (tmp_path / "cache" / "worktrees").iterdir()] == ["all.lock"]
    code, out, err = ended(cli(hostile.folder, "bisect", *ends, "--", "no-such-command"))
    assert (code, out) == (2, "")
    assert "'no-such-command' is not on PATH" in err
    assert "Traceback" not in err


def test_a_score_that_cannot_be_read_is_one_sentence(builder: Any, cli: Any) -> None:
    for number in range(3):
        builder.commit(str(number), {"n": str(number)})
    ends = ("--good", "HEAD~2", "--bad", "HEAD", "--probe", "command", "--deterministic")
    command = ("--", "sh", "-c", "echo Accuracy: 77.6")
    code, out, err = ended(cli(builder.folder, "bisect", *ends, *command))
    assert (code, out) == (2, "")
    assert "standard output:1: Accuracy is 77.6" in err
    assert "both ends" not in err.lower()


@pytest.mark.slow
def test_a_killed_bisect_goes_on_where_it_was(
    hostile: Any,
    cli: Any,
    tmp_path: Path,
    fingerprint: Callable[[Path], Any],
    until: Callable[..., Any],
    gone: Callable[[str], None],
) -> None:
    before = fingerprint(hostile.folder)
    mark, runs = tmp_path / "mark", tmp_path / "runs"
    code = (
        f"echo run >> {shlex.quote(str(runs))}; "
        f"if [ $(wc -l < {shlex.quote(str(runs))}) -eq 3 ]; then "
        f"echo $POOLBISECT_TREE > {shlex.quote(str(mark))}; sleep 1000; fi; "
        "if grep -q good state.txt; then echo Accuracy: 0.776; else echo Accuracy: 0.72; fi"
    )
    ends = ("--good", hostile.commits[0], "--bad", "main", "--probe", "command", "--deterministic")
    with cli(hostile.folder, "bisect", *ends, "--", "sh", "-c", code) as started:
        name = until(lambda: mark.is_file() and mark.read_text().strip())
        started.send_signal(signal.SIGKILL)
        started.communicate(timeout=60)
    gone(name)
    assert fingerprint(hostile.folder) == before
    status, out, err = ended(cli(hostile.folder, "bisect", "--resume", "--json"))
    assert status == 0, err
    document = json.loads(out)
    assert document["culprit"]["commit"] == hostile.commits[3]
    assert fingerprint(hostile.folder) == before
    # Both ends, three inside at most, and the run that was cut off.
    assert len(runs.read_text().split()) <= 6
    assert [path.name for path in (tmp_path / "cache" / "worktrees").iterdir()] == ["all.lock"]
