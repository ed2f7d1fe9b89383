"""The session on disk: one JSON object a line, appended and synced; state is its replay."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from poolbisect.bisection.facts import Event
from poolbisect.bisection.lines import (
    DECODER,
    SCHEMA,
    Ended,
    Forget,
    Header,
    Line,
    Resume,
    Skip,
    Started,
    Suspect,
    digest,
    placed,
    to_events,
)
from poolbisect.bisection.outcome import Observation, ProbeRequest
from poolbisect.bisection.plan import Plan
from poolbisect.bisection.search import Search
from poolbisect.errors import InfrastructureError, UsageError


@dataclass(frozen=True, slots=True)
class Record:
    """A journal as read: its file, header, every later line in order, and the length of its valid
    bytes."""

    path: Path
    header: Header
    lines: tuple[Line, ...]
    valid_bytes: int

    def events(self) -> list[Event]:
        """What the lines mean to the search; a started probe that never ended means nothing."""
        return [event for line in self.lines for event in to_events(line)]

    def search(self, names: Sequence[str]) -> Search:
        """The search as it stood. Raises UsageError if `names` are not this session's commits, or
        a line names another one than its position is."""
        if digest(names) != self.header.digest:
            raise UsageError(
                f"the session was started on {self.header.commits} commits "
                f"{self.header.good}..{self.header.bad} and the history is another one now; "
                "start a new bisect"
            )
        search = Search(names, self.header.plan)
        for number, line in enumerate(self.lines, start=2):
            for position, name in placed(line):
                if not 0 <= position < len(names):
                    raise _damaged(
                        self.path, number, f"position {position} is not one of {len(names)}"
                    )
                if names[position] != name:
                    raise _damaged(
                        self.path, number, f"position {position} is {names[position]}, not {name}"
                    )
            try:
                for event in to_events(line):
                    search.apply(event)
            except UsageError as error:
                raise _damaged(self.path, number, str(error)) from None
        return search


def read(path: Path) -> Record:
    """Parse a journal. A last line without its newline (killed while writing) is left out.

    Raises UsageError naming the file and line for anything else that does not parse.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such journal; start a bisect without --resume first"
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: the journal cannot be read ({error.strerror})") from None
    whole = raw[: raw.rfind(b"\n") + 1]
    lines: list[Line] = []
    for number, text in enumerate(whole.splitlines(), start=1):
        try:
            line = DECODER.decode(text)
        except (msgspec.MsgspecError, UsageError, UnicodeDecodeError) as error:
            raise _damaged(path, number, f"not a journal line ({error})") from None
        if isinstance(line, Header) is not (number == 1):
            raise _damaged(path, number, "a journal has one session line, its first")
        lines.append(line)
    if not lines:
        raise UsageError(f"{path}, line 1: the session line is incomplete; start a new bisect")
    header = lines[0]
    assert isinstance(header, Header)
    if header.schema != SCHEMA:
        raise UsageError(
            f"{path}, line 1: journal schema {header.schema}, this version reads {SCHEMA}; "
            "resume with the version that wrote it"
        )
    return Record(path, header, tuple(lines[1:]), len(whole))


def _damaged(path: Path, number: int, what: str) -> UsageError:
    return UsageError(f"{path}, line {number}: {what}; restore the file or start a new bisect")


class Journal:
    """Appends to a session's file; use `create` or `resume`, which hold the session's lock."""

    def __init__(self, path: Path, names: Sequence[str], search: Search) -> None:
        self.path = path
        self.names = tuple(names)
        self.search = search

    def append(self, line: Line) -> None:
        """Write one line and sync it to the disk."""
        _append(self.path, line)

    def started(self, request: ProbeRequest, at: str, attempt: int = 0) -> None:
        name = self.names[request.position]
        questions, offset = request.questions, request.offset
        self.append(Started(request.position, name, questions, offset, request.reason, at, attempt))

    def ended(self, position: int, observation: Observation, at: str) -> None:
        """Record a probe's end; the search takes it first, so a refused one is not written."""
        self.search.record(position, observation)
        self.append(Ended(position, self.names[position], observation, at))

    def skip(self, first: int, last: int, at: str) -> None:
        self.search.skip(first, last)
        self.append(Skip(first, last, (self.names[first], self.names[last]), at))

    def forget(self, position: int, at: str) -> None:
        self.search.forget(position)
        self.append(Forget(position, self.names[position], at))

    def suspect(self, position: int, at: str) -> None:
        self.search.suspect(position)
        self.append(Suspect(position, self.names[position], at))


def _append(path: Path, line: Line) -> None:
    try:
        with path.open("ab") as out:
            out.write(msgspec.json.encode(line) + b"\n")
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise InfrastructureError(
            f"{path}: the journal cannot be written ({error.strerror}); mend that and go on with "
            "--resume"
        ) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the session; raises UsageError at once if another process does."""
    lock = FileLock(f"{path}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UsageError(
            f"{path}: another poolbisect works on this session; wait for it or end it first"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def create(
    path: Path, names: Sequence[str], plan: Plan, *, command: Sequence[str], at: str
) -> Iterator[Journal]:
    """A new session. Raises UsageError if the file exists, or for a bad plan."""
    search = Search(names, plan)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        if path.exists() and path.read_bytes().count(b"\n"):
            raise UsageError(f"{path}: a session is there already; give --resume, or another name")
        path.write_bytes(b"")
        header = Header(plan, names[0], names[-1], len(names), digest(names), tuple(command), at)
        _append(path, header)
        yield Journal(path, names, search)


@contextmanager
def resume(path: Path, names: Sequence[str], *, at: str) -> Iterator[Journal]:
    """An earlier session, its torn last line cut off. Raises UsageError as `read` does."""
    if not path.exists():
        read(path)
    with locked(path):
        record = read(path)
        journal = Journal(path, names, record.search(names))
        os.truncate(path, record.valid_bytes)
        journal.search.resume()
        journal.append(Resume(at))
        yield journal
