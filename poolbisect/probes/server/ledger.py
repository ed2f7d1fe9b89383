"""Which servers run on this host and for whom, so that those of a killed tool can be ended.

A keeper process ends a server when its owner is killed (poolbisect.probes.command.keeper). This
is the second line, for when both were killed: the next start finds the record, sees that its
owner is no more, and ends what carries the record's mark in its environment, or is a process that
the record names with its start time, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil

from poolbisect.errors import InfrastructureError
from poolbisect.probes.command.tree import end_marked, marked

_KILL_SECONDS = 10.0
_SAME_START = 2.0  # seconds: the clock may have been set since


@dataclass(frozen=True, slots=True)
class Record:
    """One server: its owner (process id, start time, pid namespace), the mark of its tree, and
    the processes of it that were seen (id, start time): one may have cleared its environment."""

    owner: int
    owner_started: float
    namespace: str
    mark: str
    port: int
    command: list[str]
    seen: list[tuple[int, float]] = field(default_factory=list)


class Entry:
    """The record of a server that runs."""

    def __init__(self, path: Path, record: Record) -> None:
        self._path = path
        self._record = record
        self._write()

    def note_processes(self, server: int | None) -> None:
        """Record the tree of a server as it is now; `server` is the id of its first process."""
        if server is None:
            return
        with contextlib.suppress(psutil.Error):
            # Its parent is the keeper, to which every process of the tree falls that detaches.
            keeper = psutil.Process(server).parent()
            tree = keeper.children(recursive=True) if keeper is not None else []
            seen = [(process.pid, process.create_time()) for process in tree]
            self._record = replace(self._record, seen=seen)
            self._write()

    def _write(self) -> None:
        scratch = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            scratch.write_text(json.dumps(asdict(self._record)), encoding="utf-8")
            os.replace(scratch, self._path)
        except OSError as error:
            raise InfrastructureError(
                f"{self._path} cannot be written ({error.strerror or error})."
            ) from error


@contextmanager
def recorded(folder: Path, mark: str, port: int, command: list[str]) -> Iterator[Entry]:
    """Keep a record of a server of this process for as long as it may run."""
    path = folder / f"server-{mark}.json"
    record = Record(
        owner=os.getpid(),
        owner_started=psutil.Process().create_time(),
        namespace=_namespace(),
        mark=mark,
        port=port,
        command=command,
    )
    try:
        yield Entry(path, record)
    finally:
        # What could not be ended is left on record for the next start.
        if not any(marked(mark)):
            path.unlink(missing_ok=True)


def end_orphans(folder: Path) -> list[str]:
    """End servers whose owner is gone; the commands of those that still ran.

    Records of owners that live, or of another pid namespace sharing the folder, are left alone.
    """
    ended = []
    for path in sorted(folder.glob("server-*.json")):
        try:
            record = Record(**json.loads(path.read_text(encoding="utf-8")))
            if record.namespace != _namespace() or _lives(record):
                continue
            orphans = [*marked(record.mark), *_still(record)]
            if orphans:
                ended.append(" ".join(record.command))
            if _end(orphans) or end_marked(record.mark):
                continue  # what cannot be ended stays on record
        except (OSError, ValueError, TypeError):
            continue  # another start has just removed it, or it is none of ours
        path.unlink(missing_ok=True)
    return ended


def _still(record: Record) -> Iterator[psutil.Process]:
    """Processes that a record names and that are still the same."""
    for pid, started in record.seen:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if abs(process.create_time() - started) <= _SAME_START:
                yield process


def _end(processes: Iterable[psutil.Process]) -> bool:
    """Kill them; whether some could not be."""
    waiting = list(processes)
    for process in waiting:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _, alive = psutil.wait_procs(waiting, timeout=_KILL_SECONDS if waiting else 0)
    return bool(alive)


def _lives(record: Record) -> bool:
    try:
        started = psutil.Process(record.owner).create_time()
    except psutil.Error:
        return False
    return abs(started - record.owner_started) <= _SAME_START


def _namespace() -> str:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""
