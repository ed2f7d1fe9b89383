"""A command's end is told as it was, and nothing of its tree outlives it, its time, or us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.probes.command.process import Finished, Running, run_process
from poolbisect.probes.command.tree import MARK, assert_ended, marked

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a subreaper")


def run(folder: Path, *argv: str, timeout: float | None = 60.0, **more: Any) -> Finished:
    return run_process(
        argv,
        cwd=folder,
        env=dict(os.environ),
        timeout=timeout,
        log=folder / "log",
        stdout=folder / "stdout",
        **more,
    )


@pytest.mark.parametrize("status", [0, 1, 125, 127, 128, 255])
def test_the_status_is_the_commands(tmp_path: Path, status: int) -> None:
    finished = run(tmp_path, "sh", "-c", f"exit {status}")
    assert (finished.status, finished.signal, finished.failure) == (status, None, "")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_signal_is_no_status(tmp_path: Path, number: int) -> None:
    finished = run(tmp_path, "sh", "-c", f"kill -{int(number)} $$")
    assert (finished.status, finished.signal) == (None, number)


def test_what_does_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "script").write_text("echo no first line\n")
    (tmp_path / "script").chmod(0o755)
    missing = run(tmp_path, "./missing")
    assert (missing.status, missing.failure) == (127, "No such file or directory")
    assert (run(tmp_path, "./plain").status, run(tmp_path, "./plain").failure) == (
        126,
        "Permission denied",
    )
    headless = run(tmp_path, "./script")
    assert headless.status == 126
    assert "#!" in headless.failure


def test_both_streams_are_in_the_log_and_output_also_apart(tmp_path: Path) -> None:
    run(tmp_path, "sh", "-c", "echo out; echo err >&2; printf 'no newline'")
    assert (tmp_path / "stdout").read_bytes() == b"out\nno newline"
    assert sorted((tmp_path / "log").read_bytes().split(b"\n")) == [b"err", b"no newline", b"out"]


def test_much_output_is_kept_whole(tmp_path: Path) -> None:
    size = 3_000_000
    run(tmp_path, sys.executable, "-c", f"import sys; sys.stdout.write('x' * {size})")
    assert (tmp_path / "stdout").stat().st_size == size
    assert (tmp_path / "log").stat().st_size == size


def test_arguments_and_environment_arrive_as_they_are(tmp_path: Path) -> None:
    odd = "a b\t$HOME;'\"\n*ü\udcff"
    code = "import os, sys; os.write(1, os.fsencode(sys.argv[1] + os.environ['ODD']))"
    finished = run_process(
        [sys.executable, "-c", code, odd],
        cwd=tmp_path,
        env={**os.environ, "ODD": odd},
        timeout=60,
        log=tmp_path / "log",
        stdout=tmp_path / "stdout",
    )
    assert finished.status == 0
    assert (tmp_path / "stdout").read_bytes() == os.fsencode(odd + odd)


def test_input_is_empty_and_signals_are_not_ignored(tmp_path: Path) -> None:
    code = (
        "import signal, sys; assert sys.stdin.read() == '';"
        "assert all(signal.getsignal(s) is not signal.SIG_IGN"
        " for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))"
    )
    assert run(tmp_path, sys.executable, "-c", code).status == 0


def test_time_ends_the_whole_tree(tmp_path: Path) -> None:
    code = "sleep 1000 & sleep 1000 & wait"
    finished = run(tmp_path, "sh", "-c", code, timeout=0.2)
    assert finished.timed_out
    assert (finished.status, finished.signal, finished.stuck) == (None, None, ())


def test_who_will_not_end_is_killed(tmp_path: Path) -> None:
    code = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    finished = run(tmp_path, "sh", "-c", code, timeout=0.5, grace=0.1)
    assert finished.timed_out
    assert finished.stuck == ()


def test_who_ends_tidily_is_given_the_time(tmp_path: Path) -> None:
    code = "trap 'echo tidy; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    assert run(tmp_path, "sh", "-c", code, timeout=0.5, grace=20.0).timed_out
    assert (tmp_path / "stdout").read_text() == "up\ntidy\n"


def test_children_left_running_are_ended_and_named(tmp_path: Path) -> None:
    finished = run(tmp_path, "sh", "-c", "sleep 1000 & exit 3")
    assert (finished.status, finished.left, finished.stuck) == (3, ("sleep",), ())


def test_the_end_of_a_pipeline_may_come_after_the_command(tmp_path: Path) -> None:
    finished = run(tmp_path, "sh", "-c", "(sleep 0.1; echo late) & exit 0")
    assert finished.left == ()
    assert (tmp_path / "stdout").read_text() == "late\n"


@linux
def test_a_process_that_hides_is_found(tmp_path: Path) -> None:
    # Detached, in a session of its own, deaf, and without the mark in its environment.
    (tmp_path / "leave.sh").write_text(
        '#!/bin/sh\n(env -i /bin/sh -c \'trap "" TERM HUP; echo $$ > daemon; '
        "exec /bin/sleep 1000' < /dev/null > /dev/null 2>&1 &)\n"
        "until [ -s daemon ]; do :; done\n"
    )
    finished = run(tmp_path, "setsid", "sh", "./leave.sh", grace=0.1)
    pid = int((tmp_path / "daemon").read_text())
    assert finished.status == 0
    assert finished.left
    assert not psutil.pid_exists(pid)


def start(folder: Path, code: str) -> Running:
    return Running(
        ["sh", "-c", code],
        cwd=folder,
        env=dict(os.environ),
        log=folder / "log",
        stdout=folder / "stdout",
        grace=0.2,
    )


def test_a_running_command_can_be_watched_and_ended(
    tmp_path: Path, until: Callable[..., Any]
) -> None:
    with start(tmp_path, "echo ready; sleep 1000 & sleep 1000") as running:
        until(lambda: "ready" in (tmp_path / "log").read_text())
        assert running.poll() is None
        assert len(list(marked(running.mark))) >= 2
        assert psutil.pid_exists(running.pid or 0)
    assert_ended(running.mark)
    assert running.poll() is not None


@linux
def test_the_death_of_its_keeper_ends_it(tmp_path: Path, until: Callable[..., Any]) -> None:
    with start(tmp_path, "echo ready; (sleep 1000 &) ; sleep 1000") as running:
        until(lambda: "ready" in (tmp_path / "log").read_text())
        running._keeper.kill()
        finished = running.wait(30)
        assert finished is not None
        assert "killed" in finished.failure
        assert (finished.status, finished.signal) == (None, None)
    assert_ended(running.mark)


TOOL = """
import os, sys
from pathlib import Path
from poolbisect.probes.command.process import run_process
folder = Path(sys.argv[1])
try:
    run_process(["sh", "-c", sys.argv[2]], cwd=folder, env=dict(os.environ), timeout=None,
                log=folder / "log", stdout=folder / "stdout", grace=0.3)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


STUBBORN = (
    "echo $POOLBISECT_TREE > mark; (setsid sleep 1000 &); sleep 1000 & trap '' TERM; sleep 1000"
)


def tool(folder: Path, code: str = STUBBORN) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TOOL, str(folder), code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_end_of_the_tool_ends_the_tree(
    tmp_path: Path, number: int, until: Callable[..., Any], gone: Callable[[str], None]
) -> None:
    with tool(tmp_path) as running:
        file = tmp_path / "mark"
        mark = until(lambda: file.is_file() and file.read_text().strip())
        until(lambda: len(list(marked(mark))) >= 3)
        running.send_signal(number)
        said, _ = running.communicate(timeout=60)
    if number == signal.SIGINT:
        assert said == "interrupted\n"
        assert running.returncode == 130
        assert_ended(mark)
    gone(mark)


@linux
def test_the_command_ends_though_tool_and_keeper_are_killed_at_once(
    tmp_path: Path, until: Callable[..., Any]
) -> None:
    with tool(tmp_path, "echo $POOLBISECT_TREE > mark; exec sleep 1000") as running:
        file = tmp_path / "mark"
        mark = until(lambda: file.is_file() and file.read_text().strip())
        command = until(lambda: list(marked(mark)))[0]
        keeper = command.parent()
        assert keeper is not None
        assert keeper.ppid() == running.pid
        running.send_signal(signal.SIGSTOP)
        keeper.kill()
        running.kill()
        running.communicate(timeout=60)
        until(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE)


def test_an_interrupt_passes_once_the_tree_has_ended(
    tmp_path: Path, until: Callable[..., Any]
) -> None:
    def interrupt() -> None:
        until(lambda: (tmp_path / "mark").is_file())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "sh", "-c", f"echo ${MARK} > mark; sleep 1000", grace=0.2)
    thread.join()
    assert_ended((tmp_path / "mark").read_text().strip())


def test_a_log_that_cannot_be_written_is_the_hosts_fault(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with pytest.raises(InfrastructureError, match=r"log cannot be written"):
        run(tmp_path, "true")


@linux
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    finished = run_process(
        ["echo", "lost"],
        cwd=tmp_path,
        env=dict(os.environ),
        timeout=60,
        log=Path("/dev/full"),
        stdout=tmp_path / "stdout",
    )
    assert "No space left" in finished.failure
    assert (tmp_path / "stdout").read_text() == "lost\n"


def test_no_process_of_ours_is_left(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    run(tmp_path, "true")
    assert set(psutil.Process().children(recursive=True)) <= before
