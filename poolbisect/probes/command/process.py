"""Run a command of the user's so that nothing of it outlives its time, or us."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from poolbisect.errors import InfrastructureError
from poolbisect.probes.command import keeper
from poolbisect.probes.command.tree import MARK, end_marked

GRACE = 10.0
"""Seconds between asking a tree of processes to end and killing it."""

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""What shells end with where a command does not start."""

_REPORT_SECONDS = 30.0
"""How much longer than the grace period a keeper may take to say that all has ended."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: `status`, or the `signal` that ended it, or neither if it had to be
    ended after its time.

    `left`: names of processes that it left running and that were ended; `stuck`: ids that could
    not be ended. `failure`: why it did not start (the status is then 127 or 126, as in a shell),
    or why its output could not be kept.
    """

    status: int | None
    signal: int | None
    timed_out: bool
    seconds: float
    left: tuple[str, ...] = ()
    stuck: tuple[int, ...] = ()
    failure: str = ""


class Running:
    """A command under way in a session of its own, with everything it starts.

    The whole tree is ended by `end`, when the command itself ends, and when this process ends in
    any way, SIGKILL included. On Linux that holds for processes that detach themselves too; on
    other systems they are found by a mark in their environment when the command has ended.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        stdout: Path,
        grace: float = GRACE,
    ) -> None:
        """Start it. `log` takes both streams and `stdout` that one alone, both appended to.

        Raises:
            InfrastructureError: no process can be started, or the files cannot be written.
        """
        self.mark = uuid.uuid4().hex
        """In the environment of every process of the tree, as POOLBISECT_TREE."""
        self.pid: int | None = None
        """The command's own process; None if it did not start."""
        self._clock = time.monotonic()
        self._grace = grace
        self._answer = b""
        self._finished: Finished | None = None
        for file in (log, stdout):
            _check_writable(file)
        job = {
            "argv": list(argv),
            "cwd": str(cwd),
            "env": {**env, MARK: self.mark},
            "log": str(log),
            "stdout": str(stdout),
            "grace": grace,
        }
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is ours to handle
                bufsize=0,
            )
        except OSError as error:
            raise InfrastructureError(
                f"No child process could be started ({error.strerror or error})."
            ) from error
        try:
            self._tell(json.dumps(job))
            self._read(None)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def wait(self, seconds: float | None = None) -> Finished | None:
        """How it ended, once it and its tree have; None if that is not within `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while self._finished is None:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            if not self._read(left):
                return None
        return self._finished

    def poll(self) -> Finished | None:
        """How it ended, or None while it runs."""
        return self.wait(0.0)

    def end(self, grace: float | None = None) -> Finished:
        """End the tree: SIGTERM, and after `grace` seconds SIGKILL."""
        grace = self._grace if grace is None else grace
        if self._finished is None:
            with contextlib.suppress(InfrastructureError):
                self._tell(f"end {grace}")
            try:
                finished = self.wait(grace + _REPORT_SECONDS)
            except BaseException:  # a second Ctrl-C: at once, then
                self._keeper.kill()
                self._close()
                end_marked(self.mark)
                raise
            if finished is None:
                self._take({"ended": None, "trouble": "its keeper does not answer"})
        assert self._finished is not None
        return self._finished

    def _read(self, seconds: float | None) -> bool:
        """Take what the keeper says next; False if it says nothing within `seconds`."""
        stream = self._keeper.stdout
        assert stream is not None
        readable, _, _ = select.select([stream], [], [], seconds)
        if not readable:
            return False
        piece = os.read(stream.fileno(), 1 << 16)
        *lines, self._answer = (self._answer + piece).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        if not piece and self._finished is None:
            self._take({"ended": None, "trouble": "its keeper was killed"})
        return True

    def _take(self, facts: dict[str, Any]) -> None:
        if "started" in facts:
            self.pid = facts["started"]
            return
        seconds = time.monotonic() - self._clock
        self._close()
        survivors = end_marked(self.mark)
        if "failed" in facts:
            missing = facts["failed"] in (errno.ENOENT, errno.ENOTDIR)
            status = NOT_FOUND if missing else NOT_EXECUTABLE
            reason = facts["reason"]
            if facts["failed"] == errno.ENOEXEC:
                reason = "neither a program nor a script that begins with #!"
            self._finished = Finished(status, None, False, seconds, failure=reason)
            return
        code = facts["ended"]
        self._finished = Finished(
            status=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            timed_out=False,
            seconds=seconds,
            left=tuple(facts.get("left", ())),
            stuck=tuple({*facts.get("stuck", ()), *survivors}),
            failure=facts.get("trouble", ""),
        )

    def _tell(self, line: str) -> None:
        assert self._keeper.stdin is not None
        data = memoryview(line.encode() + b"\n")
        try:
            while data:
                data = data[self._keeper.stdin.write(data) or 0 :]
        except OSError as error:
            raise InfrastructureError(
                f"The process that runs the command does not start ({error.strerror or error})."
            ) from error

    def _close(self) -> None:
        """Let go of the keeper, which ends the tree if it has not yet, and reap it."""
        for stream in (self._keeper.stdin, self._keeper.stdout):
            if stream is not None:
                stream.close()
        try:
            self._keeper.wait(self._grace + _REPORT_SECONDS)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float | None,
    log: Path,
    stdout: Path,
    grace: float = GRACE,
) -> Finished:
    """Run a command, without a shell, to its end or that of its time; its tree ends with it.

    `env` is the whole environment; standard input is empty. As `Running` for the files and for
    what it raises. KeyboardInterrupt passes through once the tree has ended.
    """
    with Running(argv, cwd=cwd, env=env, log=log, stdout=stdout, grace=grace) as running:
        finished = running.wait(timeout)
        if finished is not None:
            return finished
        ended = running.end()
        return Finished(
            status=None,
            signal=None,
            timed_out=True,
            seconds=ended.seconds,
            left=ended.left,
            stuck=ended.stuck,
            failure=ended.failure,
        )


def _check_writable(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab"):
            pass
    except OSError as error:
        raise InfrastructureError(
            f"{file} cannot be written ({error.strerror or error})."
        ) from error
