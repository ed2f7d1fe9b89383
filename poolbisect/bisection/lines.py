"""The lines of a session's journal, and what each means to the search."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from poolbisect.bisection.facts import (
    Event,
    Forgotten,
    Recorded,
    Resumed,
    Skipped,
    Suspected,
)
from poolbisect.bisection.outcome import Observation
from poolbisect.bisection.plan import Plan

SCHEMA = 1


def digest(names: Sequence[str]) -> str:
    """SHA-256 of the commits' names in order: another history is another session."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


class Header(msgspec.Struct, frozen=True, tag="session", tag_field="event"):
    """First line: everything that decides how the session goes on.

    `command`: the command line that started it, as arguments. `at`: ISO time.
    """

    plan: Plan
    good: str
    bad: str
    commits: int
    digest: str
    command: tuple[str, ...]
    at: str
    schema: int = SCHEMA


class Started(msgspec.Struct, frozen=True, tag="probe_started", tag_field="event"):
    """`attempt`: the number of the folder with what the probe leaves behind, 0 for none."""

    position: int
    name: str
    questions: int
    offset: int
    reason: str
    at: str
    attempt: int = 0


class Ended(msgspec.Struct, frozen=True, tag="probe_ended", tag_field="event"):
    position: int
    name: str
    observation: Observation
    at: str


class Skip(msgspec.Struct, frozen=True, tag="skip", tag_field="event"):
    first: int
    last: int
    names: tuple[str, str]
    at: str


class Forget(msgspec.Struct, frozen=True, tag="forget", tag_field="event"):
    position: int
    name: str
    at: str


class Suspect(msgspec.Struct, frozen=True, tag="suspect", tag_field="event"):
    position: int
    name: str
    at: str


class Resume(msgspec.Struct, frozen=True, tag="resume", tag_field="event"):
    at: str


Line = Header | Started | Ended | Skip | Forget | Suspect | Resume

DECODER = msgspec.json.Decoder(Line)


def placed(line: Line) -> tuple[tuple[int, str], ...]:
    """Each position that a line speaks of, with the commit's name that it gives there."""
    match line:
        case Started() | Ended() | Forget() | Suspect():
            return ((line.position, line.name),)
        case Skip():
            return (line.first, line.names[0]), (line.last, line.names[1])
        case _:
            return ()


def to_events(line: Line) -> tuple[Event, ...]:
    """Search events of a line: none for the session line and for probes that only started."""
    match line:
        case Ended():
            return (Recorded(line.position, line.observation),)
        case Skip():
            return (Skipped(line.first, line.last),)
        case Forget():
            return (Forgotten(line.position),)
        case Suspect():
            return (Suspected(line.position),)
        case Resume():
            return (Resumed(),)
        case _:
            return ()
