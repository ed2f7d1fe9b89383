"""A child process for sources under test: limited, served what it reads, replaced when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import msgspec

from poolbisect.errors import InfrastructureError
from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.child_death import ChildDiedError
from poolbisect.probes.limits import Limits
from poolbisect.probes.sandbox_messages import (
    Answer,
    Answered,
    Find,
    FromChild,
    Hearing,
    OutOfTimeError,
    Read,
    Ready,
    Ticked,
    ToChild,
    send,
)

# All the child gets to see of the environment: how to start, and in which language.
_ALLOWED = frozenset({"PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ"})
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_DEVICES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_START = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); "
    "from poolbisect.probes.sandbox_child import main; main()"
)
_START_SECONDS = 180.0
_END_SECONDS = 5.0
_WIND_UP_SECONDS = 5.0


class LimitedChild:
    """One child process at a time, started when it is first needed. One thread at a time.

    With a CUDA `device` the child sees the user's devices, and its memory is not limited: a
    device's driver maps more than any limit that means something.
    """

    def __init__(self, limits: Limits, device: str = "cpu") -> None:
        on_device = device.startswith("cuda")
        self._limits = msgspec.structs.replace(limits, memory=None) if on_device else limits
        self._on_device = on_device
        self._process: subprocess.Popen[bytes] | None = None
        self._hearing: Hearing | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._is_ready = False
        self._is_asked = False  # and has not answered yet

    def start(self) -> None:
        """Start the child now if there is none, without waiting until it is ready.

        Raises:
            InfrastructureError: no process can be started.
        """
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it ended while nothing was asked of it, which is no tree's doing
        if self._process is not None:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="poolbisect-")
        try:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment(self._folder.name),
                cwd=self._folder.name,
                start_new_session=True,  # Ctrl-C is ours to handle
                bufsize=-1,
            )
        except OSError as error:
            self.close()
            raise InfrastructureError(
                f"No child process could be started ({error.strerror or error})."
            ) from error
        assert self._process.stdout is not None
        self._hearing = Hearing(self._process.stdout)
        self._is_ready = False

    def ask(
        self,
        tree: SourceTree,
        question: ToChild,
        seconds: float,
        on_tick: Callable[[Ticked], None] | None = None,
    ) -> Answer:
        """The child's answer to `question`, serving it the sources of `tree` as it asks for them.

        KeyboardInterrupt leaves the child at work, for `wind_up` or `close`.

        Raises:
            OutOfTimeError: it took longer than `seconds`, or its limit of processor time; the
                child is ended.
            ChildDiedError: the child ended.
            InfrastructureError: the child cannot start, or the sources cannot be read.
        """
        try:
            self.start()
            self._await_ready()
            self._is_asked = True
            self._say(question)
            return self._answer(tree, time.monotonic() + seconds, on_tick)
        except KeyboardInterrupt:
            raise
        except BaseException:
            self.close()  # it would go on answering what nobody asks any more
            raise

    def wind_up(self, tree: SourceTree) -> Answer | None:
        """Ask a child that serves to stop, and give its answer so far, or None without one."""
        if self._process is None or not self._is_asked:
            self.close()
            return None
        try:
            self._process.send_signal(signal.SIGINT)
            return self._answer(tree, time.monotonic() + _WIND_UP_SECONDS, None)
        except (OutOfTimeError, ChildDiedError, InfrastructureError, OSError, ValueError):
            self.close()
            return None
        except BaseException:
            self.close()
            raise

    def abort(self) -> None:
        """End the child from another thread; a question under way returns at once."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self._is_asked = False

    def _await_ready(self) -> None:
        if self._is_ready:
            return
        try:
            self._is_ready = isinstance(self._hear(time.monotonic() + _START_SECONDS), Ready)
        except (ChildDiedError, OutOfTimeError):
            self._is_ready = False
        if not self._is_ready:
            self.close()
            raise InfrastructureError(
                f"The child process that runs sources under test does not start; check that "
                f"`{sys.executable} -I -c 'import torch'` works."
            )

    def _answer(
        self, tree: SourceTree, until: float, on_tick: Callable[[Ticked], None] | None
    ) -> Answer:
        while True:
            match self._hear(until):
                case Read() | Find() as question:
                    self._say(_looked_up(tree, question))
                case Ticked() as tick:
                    if on_tick is not None:
                        on_tick(tick)
                case Ready():
                    raise self._garbled()
                case answer:
                    self._is_asked = False
                    return answer

    def _say(self, message: ToChild) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, message)
        except OSError as error:
            raise self._died() from error

    def _hear(self, until: float) -> FromChild:
        assert self._hearing is not None
        try:
            return self._hearing.next(until)
        except OutOfTimeError:
            self.close()
            raise
        except ValueError as error:
            raise self._garbled() from error
        except (EOFError, OSError) as error:
            raise self._died() from error

    def _died(self) -> ChildDiedError | OutOfTimeError:
        assert self._process is not None
        try:
            status = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it lives, but has closed what it talks through
            return self._garbled()
        self.close()
        if status == -getattr(signal, "SIGXCPU", 0):
            return OutOfTimeError()
        return ChildDiedError.of(status)

    def _garbled(self) -> ChildDiedError:
        self.close()
        return ChildDiedError("breaks into what the process that runs it has to say")

    def _command(self) -> list[str]:
        # Isolated from the environment, so the path is handed over; an empty entry is here.
        path = "\n".join(os.path.abspath(entry) for entry in sys.path)
        limits = msgspec.json.encode(self._limits).decode()
        return [sys.executable, "-I", "-B", "-c", _START, limits, path]

    def _environment(self, folder: str) -> dict[str, str]:
        kept = set(_ALLOWED)
        made = {"HOME": folder, "TMPDIR": folder}
        if self._limits.threads is None:
            kept.update(_THREADS)
        else:
            made |= {name: str(self._limits.threads) for name in _THREADS}
        if self._on_device:
            kept.update(_DEVICES)
            made["CUDA_CACHE_DISABLE"] = "1"  # a cache of kernels would be a file
        else:
            made["CUDA_VISIBLE_DEVICES"] = ""
        return {name: value for name, value in os.environ.items() if name in kept} | made


def _looked_up(tree: SourceTree, question: Read | Find) -> Answered:
    """What the child wants to know of its sources.

    Raises:
        InfrastructureError: they cannot be read, which is nobody's fault but the host's.
    """
    try:
        if isinstance(question, Read):
            return Answered(text=tree.read(question.path))
        return Answered(paths=tuple(tree.find(question.text, question.under)))
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"The sources of {tree.name} cannot be read ({error})."
        ) from error
