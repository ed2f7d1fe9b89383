"""The child process in which sliced sources run: limited, and without anything of the user's.

Started by `poolbisect.probes.limited_child`, which serves it the sources it asks for. Limits that
the kernel enforces: memory, processor time, file size, core dumps. An audit hook refuses to open
files for writing, to change the file system, to start processes and to use the network; it guards
against accidents, not against an attacker.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import msgspec

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.limits import (
    Limits,
    limit_further_memory,
    limit_memory,
    limit_process,
    processor_time,
)
from poolbisect.probes.sandbox_messages import (
    Answer,
    Answered,
    Broken,
    Done,
    Fault,
    Find,
    Inspect,
    Probe,
    Read,
    Ready,
    Refused,
    Serve,
    Ticked,
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
        self._is_up = False
        sys.addaudithook(self._audit)

    @contextmanager
    def up(self) -> Iterator[None]:
        self._is_up = True
        try:
            yield
        finally:
            self._is_up = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_up:
            return
        if event == "ctypes.dlopen" and arguments[0] is None:
            return  # the process itself, as when the engine tunes its heap
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if writes or event.startswith(_FORBIDDEN):
            # Not a fault of theirs: whether this would have worked elsewhere is unknown.
            from poolbisect.pools.upstream.faults import Unanswered

            raise Unanswered(f"{event}, which is not allowed here")


class _Interrupt:
    """Remembers that the parent wants the serving to end."""

    def __init__(self) -> None:
        self.wanted = False
        signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: object) -> None:
        self.wanted = True


def main() -> None:
    """Answer questions until the parent is gone."""
    interrupt = _Interrupt()
    limits = msgspec.json.decode(sys.argv[1], type=Limits)
    answers = os.fdopen(os.dup(0), "rb")
    requests = os.fdopen(os.dup(1), "wb")
    # What sources under test print must not come between our messages.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)

    import torch

    import poolbisect.probes.contract_states  # noqa: F401 - now, while nothing is limited

    if limits.threads is not None:
        torch.set_num_threads(limits.threads)
    limit_process(limits)
    gc.disable()
    barrier = _Barrier()
    send(requests, Ready())
    while True:
        try:
            asked = receive_in_child(answers)
        except EOFError:
            return
        assert not isinstance(asked, Answered)
        interrupt.wanted = False
        tree = _ServedTree(asked.name, requests, answers)

        def on_tick(done: int, right: int, tokens: int, seconds: float) -> None:
            if interrupt.wanted:
                raise KeyboardInterrupt
            send(requests, Ticked(done, right, tokens, seconds))

        send(requests, _answer(asked, tree, limits, barrier, on_tick))
        # What is alive now are parsed files for later: millions of nodes without a cycle, which
        # the collector need not look at again.
        gc.collect()
        gc.freeze()


def _answer(
    asked: Probe | Inspect | Serve,
    tree: SourceTree,
    limits: Limits,
    barrier: _Barrier,
    on_tick: Callable[[int, int, int, float], None],
) -> Answer:
    from poolbisect.pools.upstream.faults import Unanswered

    try:
        if isinstance(asked, Probe):
            from poolbisect.probes.contract_states import contract_state

            with processor_time(limits.cpu_seconds), barrier.up():
                return Done(contract_state(tree, asked.plans))
        return _on_engine(asked, tree, limits, barrier, on_tick)
    except UsageError as error:
        return Refused(Fault.USAGE, str(error))
    except InfrastructureError as error:
        return Refused(Fault.HOST, str(error).rstrip("."))
    except Unanswered as gap:  # in code of ours, or it would have been told apart there
        return Broken(f"a need for {gap}")
    except Exception as error:
        return Broken(f"{type(error).__name__}: {error}")


def _on_engine(
    asked: Inspect | Serve,
    tree: SourceTree,
    limits: Limits,
    barrier: _Barrier,
    on_tick: Callable[[int, int, int, float], None],
) -> Answer:
    import torch

    from poolbisect.probes import served_apart_child as serving

    threads = torch.get_num_threads()
    if isinstance(asked, Inspect):
        if limits.memory is not None:
            limit_further_memory(limits.memory, threads)
        with processor_time(limits.cpu_for(0) * threads), barrier.up():
            return serving.inspected(tree, asked)
    limit_memory(None)
    bench = serving.workbench(asked)  # reads files, so before the barrier is up
    if limits.memory is not None:
        limit_further_memory(bench.reserved + limits.memory, threads)
    gc.enable()  # as where nothing is served apart: an engine lives long enough to need it
    try:
        with processor_time(limits.cpu_for(asked.count) * threads), barrier.up():
            return serving.served(tree, asked, bench, on_tick)
    finally:
        gc.disable()
