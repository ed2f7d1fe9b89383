"""Probe untrusted sources in a child process that is limited, and replaced when they kill it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from types import TracebackType

import msgspec

from poolbisect.errors import InfrastructureError
from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.facets import Condition, ContractState, PoolPlan, whole
from poolbisect.probes.sandbox_child import Limits
from poolbisect.probes.sandbox_messages import (
    Answered,
    Broken,
    Done,
    Find,
    FromChild,
    Probe,
    Read,
    Ready,
    receive_from_child,
    send,
)

__all__ = ["Limits", "Sandbox"]

# All the child gets to see of the environment: how to start, and in which language.
_ALLOWED = frozenset({"PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ"})
_START = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); "
    "from poolbisect.probes.sandbox_child import main; main()"
)
_START_SECONDS = 180.0
_END_SECONDS = 5.0


class _OutOfTimeError(Exception):
    """The child did not say anything in time."""


class Sandbox:
    """A child process that judges one tree of sources after another.

    The child starts with the first probe and serves all that follow; a tree that kills it or runs
    out of time has that as its own answer, and the next one gets a new child. One thread at a time.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._child: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._is_ready = False

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the child now if there is none, without waiting until it is ready.

        Raises:
            InfrastructureError: no process can be started.
        """
        if self._child is not None:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="poolbisect-")
        try:
            self._child = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(self._folder.name),
                cwd=self._folder.name,
                start_new_session=True,  # Ctrl-C is ours to handle
                bufsize=-1,
            )
        except OSError as error:
            self.close()
            raise InfrastructureError(
                f"No child process could be started ({error.strerror or error})."
            ) from error
        self._is_ready = False

    def probe(self, tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
        """What `tree` answers to `plans`, serving it its own sources as it asks for them.

        Raises:
            InfrastructureError: the child cannot start.
        """
        self.start()
        assert self._child is not None
        try:
            self._await_ready()
            return self._serve(tree, plans)
        except _OutOfTimeError:
            self.close()
            return self._timed_out(tree, plans)
        except (EOFError, OSError, ValueError):
            return self._died(tree, plans)
        except BaseException:
            self.close()
            raise

    def abort(self) -> None:
        """End the child from another thread; a probe under way returns at once, with any answer."""
        child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _await_ready(self) -> None:
        if self._is_ready:
            return
        try:
            self._is_ready = isinstance(self._receive(_START_SECONDS), Ready)
        except (EOFError, OSError, ValueError, _OutOfTimeError):
            self._is_ready = False
        if not self._is_ready:
            self.close()
            raise InfrastructureError(
                f"The child process that runs sources under test does not start; check that "
                f"`{sys.executable} -I -c 'import torch'` works."
            )

    def _serve(self, tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
        assert self._child is not None
        assert self._child.stdin is not None
        until = time.monotonic() + self._limits.wall_seconds
        send(self._child.stdin, Probe(tree.name, plans))
        while True:
            match self._receive(until - time.monotonic()):
                case Read(path):
                    send(self._child.stdin, Answered(text=tree.read(path)))
                case Find(text, under):
                    send(self._child.stdin, Answered(paths=tuple(tree.find(text, under))))
                case Done(state):
                    return state
                case Broken(reason):
                    detail = f"{tree.name} cannot be tested: the probe itself raised {reason}."
                    return whole(plans, Condition.UNTESTABLE, detail)
                case Ready():
                    raise ValueError("ready twice")

    def _receive(self, seconds: float) -> FromChild:
        assert self._child is not None
        stream = self._child.stdout
        assert stream is not None
        # Messages alternate, so nothing waits in the buffer when the next one is awaited.
        readable, _, _ = select.select([stream], [], [], max(seconds, 0.0))
        if not readable:
            raise _OutOfTimeError
        return receive_from_child(stream)

    def _died(self, tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
        assert self._child is not None
        try:
            status = self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it lives, but what it says is no message
            status = 0
        self.close()
        if status == -getattr(signal, "SIGXCPU", 0):
            return self._timed_out(tree, plans)
        how = f"with signal {-status}" if status < 0 else f"with status {status}"
        detail = f"{tree.name} itself fails: it ends the process that runs it {how}."
        return whole(plans, Condition.CRASHED, detail)

    def _timed_out(self, tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
        detail = (
            f"{tree.name} was stopped after {self._limits.cpu_seconds} seconds of processor time "
            f"or {self._limits.wall_seconds:g} seconds in all."
        )
        return whole(plans, Condition.TIMED_OUT, detail)

    def _command(self) -> list[str]:
        # Isolated from the environment, so the path is handed over; an empty entry is here.
        path = "\n".join(os.path.abspath(entry) for entry in sys.path)
        limits = msgspec.json.encode(self._limits).decode()
        return [sys.executable, "-I", "-B", "-c", _START, limits, path]


def _environment(folder: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _ALLOWED}
    return kept | {
        "HOME": folder,
        "TMPDIR": folder,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
