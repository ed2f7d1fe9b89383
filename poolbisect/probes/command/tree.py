"""Processes of one tree, found by the mark in their environment wherever they went."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil

MARK = "POOLBISECT_TREE"
"""Environment variable whose value names the tree a process belongs to."""

_KILL_SECONDS = 10.0


def marked(mark: str) -> Iterator[psutil.Process]:
    """Living processes of the tree, but for this one; of those whose environment may be read."""
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.environ().get(MARK) == mark
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                yield process
        except (psutil.Error, OSError):
            continue


def end_marked(mark: str) -> tuple[int, ...]:
    """Kill what is left of a tree; the ids of what could not be killed."""
    stuck: list[psutil.Process] = list(marked(mark))
    for process in stuck:
        try:
            process.kill()
        except psutil.Error:
            continue
    _, alive = psutil.wait_procs(stuck, timeout=_KILL_SECONDS if stuck else 0)
    return tuple(process.pid for process in alive)


def assert_ended(mark: str) -> None:
    """AssertionError that names the processes of a tree which still live."""
    alive = [f"{process.pid} ({process.name()})" for process in marked(mark)]
    assert not alive, f"processes of {mark} still run: {', '.join(alive)}"
