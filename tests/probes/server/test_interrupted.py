"""Ctrl-C and kill -9 of the tool, and the start after it: nothing of a server is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from poolbisect.measurement import Ended, Measurement
from poolbisect.probes.command.tree import MARK
from poolbisect.probes.server.ledger import end_orphans
from poolbisect.probes.server.ports import is_free

TOOL = Path(__file__).parent / "stand_in" / "tool.py"


@pytest.fixture
def start_tool(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start the tool on a fault; returns when its server answers."""
    started: list[subprocess.Popen[str]] = []

    def start(fault: str) -> subprocess.Popen[str]:
        tool = subprocess.Popen(
            [sys.executable, str(TOOL), str(tmp_path), fault],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        started.append(tool)
        assert tool.stdout is not None
        assert tool.stdout.readline() == "up\n"
        return tool

    yield start
    for tool in started:
        tool.kill()
        tool.wait()
        if tool.stdout is not None:
            tool.stdout.close()


def record(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("leases/server-*.json")
    found: dict[str, object] = json.loads(path.read_text())
    return found


def tree_of(mark: object) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def test_ctrl_c_leaves_a_partial_result_and_nothing_else(
    start_tool: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    tool = start_tool("hang")
    server = record(tmp_path)
    tool.send_signal(signal.SIGINT)
    said, _ = tool.communicate()
    assert tool.returncode == 0
    assert said.startswith("partial interrupted after ")
    assert tree_of(server["mark"]) == []
    assert is_free("127.0.0.1", int(str(server["port"])))
    assert not list(tmp_path.glob("leases/server-*.json"))


def test_kill_9_ends_the_server_too(
    start_tool: Callable[[str], subprocess.Popen[str]],
    tmp_path: Path,
    detached_processes: Callable[[Path], dict[int, bool]],
) -> None:
    tool = start_tool("leak-and-hang")
    server = record(tmp_path)
    below = psutil.Process(tool.pid).children(recursive=True)
    tool.kill()
    tool.wait()
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []
    assert tree_of(server["mark"]) == []
    assert is_free("127.0.0.1", int(str(server["port"])))
    assert not any(detached_processes(tmp_path / "run" / "server.log").values())
    assert end_orphans(tmp_path / "leases") == []  # and forgets the record


def test_the_next_start_ends_what_a_killed_tool_and_keeper_left(
    start_tool: Callable[[str], subprocess.Popen[str]],
    tmp_path: Path,
    serve: Callable[..., Measurement],
    detached_processes: Callable[[Path], dict[int, bool]],
) -> None:
    tool = start_tool("leak-and-hang")
    log = tmp_path / "run" / "server.log"
    mark = record(tmp_path)["mark"]
    (keeper,) = psutil.Process(tool.pid).children()
    keeper.kill()
    tool.kill()
    tool.wait()
    # Detached children outlive both, the one that cleared its environment too.
    assert list(detached_processes(log).values()) == [True, True]
    found = serve("", folder="another")
    assert (found.ended, found.accuracy) == (Ended.MEASURED, 1.0)
    assert tree_of(mark) == []
    assert list(detached_processes(log).values()) == [False, False]


def test_a_server_whose_owner_lives_is_left_alone(
    start_tool: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    start_tool("hang")
    mark = record(tmp_path)["mark"]
    before = tree_of(mark)
    assert end_orphans(tmp_path / "leases") == []
    assert tree_of(mark) == before
    assert before
