"""What the stand-in can be told to do wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

AFTER = 10
"""Answers that are given before something happens in mid-run."""
LOST = 40
"""Questions that are never answered, of those that lose some."""

_SLEEP = "import time; time.sleep(600)"


def at_start(fault: str, socket_fd: int | None = None) -> None:
    """Faults that show before anything is served."""
    if fault == "import":
        import a_module_that_is_not_there  # noqa: F401
    if fault == "oom":
        say("Traceback (most recent call last):")
        say("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
        sys.exit(1)
    if fault == "index-at-start":
        raise IndexError("index 32 is out of bounds for dimension 0 with size 32")
    if fault == "start":
        raise RuntimeError("the configuration makes no sense")
    if fault == "parent-waits":
        # A child of the launcher died, and the launcher has not noticed.
        say("[2026-05-01 12:00:00 TP0] Scheduler hit an exception: Traceback ...")
        say("RuntimeError: CUDA error: an illegal memory access was encountered")
    if fault.startswith("leak"):
        detached(clean=False)
        detached(clean=True)
    if fault == "hold-port" and socket_fd is not None:
        detached(clean=True, keep=socket_fd)


def in_mid_run(fault: str) -> None:
    """Faults that show once AFTER questions were answered."""
    if fault == "die":
        say("Traceback (most recent call last):")
        say("IndexError: index 65 is out of bounds for dimension 0 with size 65")
        os._exit(1)
    if fault == "illegal":
        # As SGLang's launcher does when a child of it fails: the whole tree, by SIGKILL.
        say("torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
        say("Received sigquit from a child process. It usually means the child failed.")
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "assert":
        say("RuntimeError: CUDA error: device-side assert triggered")
        os._exit(1)
    if fault == "nan-crash":
        say("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0")
        os._exit(1)
    if fault == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.endswith("hang"):
        threading.Event().wait()


def detached(*, clean: bool, keep: int | None = None) -> None:
    """A grandchild in a session of its own; `clean`: without the environment it came from."""
    child = subprocess.Popen(
        [sys.executable, "-c", _SLEEP],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={} if clean else None,
        pass_fds=() if keep is None else (keep,),
    )
    say(f"detached {child.pid}")


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
