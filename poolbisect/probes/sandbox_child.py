"""The child process in which sliced sources run: limited, and without anything of the user's.

Started by `poolbisect.probes.sandbox`, which serves it the sources it asks for. Limits that the
kernel enforces: memory, processor time, file size, core dumps. An audit hook refuses to open
files for writing, to change the file system, to start processes and to use the network; it guards
against accidents, not against an attacker.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from typing import IO, Any

import msgspec

from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.sandbox_messages import (
    Answered,
    Broken,
    Done,
    Find,
    Probe,
    Read,
    Ready,
    receive_in_child,
    send,
)

_FORBIDDEN = (
    *("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system"),
    *("os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.truncate", "os.putenv", "os.utime", "shutil.", "ftplib."),
    *("ctypes.dlopen", "webbrowser.", "urllib.Request"),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Limits(msgspec.Struct, frozen=True):
    """What one state of the sources may use: processor seconds, seconds in all, bytes of memory."""

    cpu_seconds: int = 20
    wall_seconds: float = 300.0
    memory: int = 2 << 30


class _ServedTree(SourceTree):
    """The sources under test, asked of the parent process."""

    def __init__(self, name: str, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._name = name
        self._requests = requests
        self._answers = answers

    @property
    def name(self) -> str:
        return self._name

    def read(self, path: str) -> str | None:
        return self._ask(Read(path)).text

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        return self._ask(Find(text, under)).paths

    def _ask(self, question: Read | Find) -> Answered:
        send(self._requests, question)
        answer = receive_in_child(self._answers)
        assert isinstance(answer, Answered)
        return answer


class _Barrier:
    """Refuses what sources under test have no business doing, while it is up."""

    def __init__(self) -> None:
        self.up = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.up:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if writes or event.startswith(_FORBIDDEN):
            # Not a fault of theirs: whether this would have worked elsewhere is unknown.
            from poolbisect.pools.upstream.faults import Unanswered

            raise Unanswered(f"{event}, which is not allowed here")


def main() -> None:
    """Answer probes until the parent is gone."""
    limits = msgspec.json.decode(sys.argv[1], type=Limits)
    answers = os.fdopen(os.dup(0), "rb")
    requests = os.fdopen(os.dup(1), "wb")
    # What sources under test print must not come between our messages.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)

    import torch

    import poolbisect.probes.contract_states as probe

    torch.set_num_threads(1)
    _limit_process(limits)
    gc.disable()
    barrier = _Barrier()
    send(requests, Ready())
    while True:
        try:
            asked = receive_in_child(answers)
        except EOFError:
            return
        assert isinstance(asked, Probe)
        _allow_processor_time(limits.cpu_seconds)
        tree = _ServedTree(asked.name, requests, answers)
        barrier.up = True
        try:
            found: Done | Broken = Done(probe.contract_state(tree, asked.plans))
        except Exception as error:
            found = Broken(f"{type(error).__name__}: {error}")
        finally:
            barrier.up = False
        send(requests, found)
        # What is alive now are parsed files for later: millions of nodes without a cycle, which
        # the collector need not look at again.
        gc.collect()
        gc.freeze()


def _limit_process(limits: Limits) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent's clock is the only limit there
        return
    for what, limit in (
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (allowed, allowed))


def _allow_processor_time(seconds: int) -> None:
    """From now on, `seconds` more; the kernel ends the process with SIGXCPU after that."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
