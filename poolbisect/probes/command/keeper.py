"""A small process between us and a command: it ends the command's whole tree, also without us.

Run as a file, with the standard library alone. Its standard input is its lifeline: the first line
says what to run, a line `end <seconds>` ends it, and the end of the stream, which comes however
the parent dies, does the same. Standard output carries one JSON object a line: `started`, then
`ended`; or `failed`. On Linux it is the subreaper of its descendants, so that a process which
detaches from its parent becomes a child of the keeper and is found; elsewhere one is found while
it has its parent or its process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SETTLE_SECONDS = 0.5
"""What a pipeline's last processes are given to end after the command itself has."""
_LEFT_SECONDS = 2.0
"""The most of the grace period for what the command itself has left running."""
_KILL_SECONDS = 10.0
_TICK = 0.02
_CHUNK = 1 << 16


def main() -> None:
    wake, waker = os.pipe()
    for end in (wake, waker):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    stopping: list[int] = []
    # Functions, since an ignored signal would stay ignored in the command.
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, lambda number, _: stopping.append(number))
    prctl = _prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    job = _first_line()
    if job is None:
        return
    keeper = os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)

    with open(job["log"], "ab", buffering=0) as log, open(job["stdout"], "ab", buffering=0) as out:
        try:
            command = subprocess.Popen(
                job["argv"],
                cwd=job["cwd"],
                env=job["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                preexec_fn=in_child,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            number = getattr(error, "errno", None)
            _say(failed=number or 0, reason=getattr(error, "strerror", None) or str(error))
            return
        _say(started=command.pid)
        assert command.stdout is not None
        _Tree(command, command.stdout.fileno(), (log, out), wake, stopping, job["grace"]).keep()


class _Tree:
    """The command and everything it has started."""

    def __init__(
        self,
        command: subprocess.Popen[bytes],
        pipe: int,
        copies: tuple[Any, ...],
        wake: int,
        stopping: list[int],
        grace: float,
    ) -> None:
        self._command = command
        self._pipe: int | None = pipe
        os.set_blocking(pipe, False)
        self._copies = copies
        self._wake = wake
        self._stopping = stopping
        self._grace = grace
        self._lifeline: int | None = 0
        self._status: int | None = None
        self._trouble = ""

    def keep(self) -> None:
        """Until the command ends or is to end; then nothing of it is left, and that is said."""
        told = False
        while self._status is None and not told:
            told = self._wait(None)
        left: list[str] = []
        if not told:
            self._until_empty(_SETTLE_SECONDS)
            left = [name for _, name in _alive(self._command.pid)]
        self._ask(self._grace if told else min(self._grace, _LEFT_SECONDS))
        until = time.monotonic() + _KILL_SECONDS
        while self._kill() and time.monotonic() < until:
            self._wait(_TICK)
        self._drain()
        stuck = [pid for pid, _ in _alive(self._command.pid)]
        _say(ended=self._status, left=left, stuck=stuck, trouble=self._trouble)

    def _until_empty(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while _alive(self._command.pid) and time.monotonic() < until:
            self._wait(_TICK)

    def _ask(self, seconds: float) -> None:
        """SIGTERM to each, also to those that start meanwhile, until none is left."""
        asked: set[int] = set()
        until = time.monotonic() + seconds
        while alive := {pid for pid, _ in _alive(self._command.pid)}:
            for pid in alive - asked:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGTERM)
                    os.kill(pid, signal.SIGCONT)  # a stopped process sees the first one then
            asked |= alive
            if time.monotonic() >= until:
                return
            self._wait(_TICK)

    def _kill(self) -> bool:
        """SIGKILL to all that live; whether there were any."""
        alive = _alive(self._command.pid)
        for pid, _ in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return bool(alive)

    def _wait(self, seconds: float | None) -> bool:
        """Until something happens: copy output, reap the dead; whether the tree is to end."""
        sources = [fd for fd in (self._pipe, self._wake, self._lifeline) if fd is not None]
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._wake in ready:
            _read(self._wake)
        if self._pipe in ready:
            self._copy()
        told = False
        if self._lifeline in ready:
            line = _read(0)
            told = True
            if line:
                self._grace = float(line.split()[-1])
            else:
                self._lifeline = None
        self._reap()
        return told or bool(self._stopping)

    def _copy(self) -> bool:
        """One piece of the command's output; whether there was any."""
        assert self._pipe is not None
        piece = _read(self._pipe)
        if not piece:
            if piece is not None:
                os.close(self._pipe)
                self._pipe = None
            return False
        for copy in self._copies:
            try:
                view = memoryview(piece)
                while view:
                    view = view[copy.write(view) :]
            except OSError as error:
                self._trouble = self._trouble or f"{copy.name}: {error.strerror}"
        return True

    def _drain(self) -> None:
        while self._pipe is not None and self._copy():
            pass

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._command.pid:
                self._status = os.waitstatus_to_exitcode(status)
                self._command.returncode = self._status


def _alive(command: int) -> list[tuple[int, str]]:
    """Process ids and names of all that descend from this process, zombies left out."""
    found: dict[int, tuple[int, int, str, str]] = {}
    try:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            entry = _stat(pid)
            if entry is not None:
                found[int(pid)] = entry
    except OSError:
        pass
    if os.getpid() not in found:
        found = _listed()
    ours = {os.getpid()}
    grown = True
    while grown:
        more = {
            pid
            for pid, (parent, group, _, _) in found.items()
            if pid not in ours and (parent in ours or group == command)
        }
        ours |= more
        grown = bool(more)
    ours.discard(os.getpid())
    return [(pid, found[pid][3]) for pid in sorted(ours) if found[pid][2] not in ("Z", "X")]


def _stat(pid: str) -> tuple[int, int, str, str] | None:
    """Parent, group, state and name of a process, from Linux's table."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    # "<pid> (<name, which may hold anything>) <state> <parent> <group> ..."
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return int(fields[1]), int(fields[2]), fields[0], name


def _listed() -> dict[int, tuple[int, int, str, str]]:
    """The same of all processes, from ps, where there is no such table."""
    shown = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,comm="], capture_output=True, check=False
    )
    found = {}
    for line in shown.stdout.decode(errors="replace").splitlines():
        pid, parent, group, state, name = line.split(None, 4)
        if name != "ps":
            found[int(pid)] = int(parent), int(group), state[0], name
    return found


def _read(fd: int) -> bytes | None:
    """What there is to read: empty at the end, None for nothing yet."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None


def _first_line() -> dict[str, Any] | None:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            return None
        line += piece
    job: dict[str, Any] = json.loads(line)
    return job


def _say(**facts: Any) -> None:
    with contextlib.suppress(OSError):  # the parent is gone; the tree ends all the same
        os.write(1, json.dumps(facts).encode() + b"\n")


def _prctl() -> Callable[[int, int], Any]:
    if not sys.platform.startswith("linux"):
        return lambda option, value: None
    call = ctypes.CDLL(None, use_errno=True).prctl
    return lambda option, value: call(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
