"""The launches of a search on disk: one JSON object a line, appended and synced.

A search is a function of its launches, so resuming one is running it again with those at hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from poolbisect.bisection.journal import locked
from poolbisect.errors import UsageError
from poolbisect.switches.launch import Launch, LaunchRequest
from poolbisect.switches.request import ConfigRequest

SCHEMA = 1
FILE = "journal.jsonl"


class Header(msgspec.Struct, frozen=True, tag="config_session", tag_field="event"):
    """First line: what is asked, whole. `command`: as arguments. `at`: ISO time."""

    request: ConfigRequest
    command: tuple[str, ...]
    at: str
    schema: int = SCHEMA


class Started(msgspec.Struct, frozen=True, tag="launch_started", tag_field="event"):
    request: LaunchRequest
    reason: str
    at: str


class Ended(msgspec.Struct, frozen=True, tag="launch_ended", tag_field="event"):
    launch: Launch
    at: str


class Resumed(msgspec.Struct, frozen=True, tag="resume", tag_field="event"):
    at: str


Line = Header | Started | Ended | Resumed
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class Journal:
    """Appends to an open session of `request`; `recorded` are the launches it held when opened."""

    def __init__(self, path: Path, request: ConfigRequest, recorded: Sequence[Launch] = ()) -> None:
        self.path = path
        self.request = request
        self.recorded = tuple(recorded)

    def started(self, request: LaunchRequest, reason: str, at: str) -> None:
        self.append(Started(request, reason, at))

    def ended(self, launch: Launch, at: str) -> None:
        self.append(Ended(launch, at))

    def append(self, line: Line) -> None:
        """Write one line and sync it to the disk."""
        with self.path.open("ab") as out:
            out.write(msgspec.json.encode(line) + b"\n")
            out.flush()
            os.fsync(out.fileno())


@contextmanager
def create(
    path: Path, request: ConfigRequest, command: Sequence[str], at: str
) -> Iterator[Journal]:
    """A new session. UsageError if there is one at `path`, or another process holds it."""
    with locked(path):
        if path.exists():
            raise UsageError(f"{path}: a session is there already; give --resume, or another --out")
        journal = Journal(path, request)
        journal.append(Header(request, tuple(command), at))
        yield journal


@contextmanager
def resume(path: Path, at: str) -> Iterator[Journal]:
    """An earlier session, its torn last line cut off.

    UsageError names the file and the line that cannot be read.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such journal; run without --resume first")
    with locked(path):
        header, lines, length = _read(path)
        os.truncate(path, length)
        launches = [line.launch for line in lines if isinstance(line, Ended)]
        journal = Journal(path, header.request, launches)
        journal.append(Resumed(at))
        yield journal


def _read(path: Path) -> tuple[Header, list[Line], int]:
    """Header, later lines, and the length of the valid bytes (a torn last line is left out)."""
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    lines: list[Line] = []
    for number, text in enumerate(whole.splitlines(), start=1):
        try:
            lines.append(_DECODER.decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{path}, line {number}: not a journal line ({error}); restore the file or start "
                "a new search"
            ) from None
        if isinstance(lines[-1], Header) is not (number == 1):
            raise UsageError(
                f"{path}, line {number}: a journal has one session line, its first; restore the "
                "file or start a new search"
            )
    if not lines:
        raise UsageError(f"{path}, line 1: the session line is incomplete; start a new search")
    header = lines[0]
    assert isinstance(header, Header)
    if header.schema != SCHEMA:
        raise UsageError(
            f"{path}, line 1: journal schema {header.schema}, this version reads {SCHEMA}; "
            "resume with the version that wrote it"
        )
    return header, lines[1:], len(whole)
