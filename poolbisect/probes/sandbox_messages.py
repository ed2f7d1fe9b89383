"""What a limited child and its parent say to each other: length-prefixed MessagePack, typed.

Not pickle: sources under test run in the child, and unpickling what they might send would run it
here.
"""

from __future__ import annotations

import os
import select
import struct
import time
from enum import StrEnum
from typing import IO, TypeAlias

import msgspec

from poolbisect.measurement import Ended, Measurement
from poolbisect.memory.guard import MemoryMode
from poolbisect.probes.facets import ContractState, PoolPlan
from poolbisect.scenario import Scenario

_LENGTH = struct.Struct("!I")
LONGEST = 1 << 26
"""Bytes of the longest message taken, well above any source file and any measurement."""
_CHUNK = 1 << 16


class Probe(msgspec.Struct, frozen=True, tag=True):
    """To the child: judge the sources called `name`."""

    name: str
    plans: tuple[PoolPlan, ...]


class Inspect(msgspec.Struct, frozen=True, tag=True):
    """To the child: make the scenario's pools from the sources called `name`, serve nothing."""

    name: str
    scenario: Scenario


class Serve(msgspec.Struct, frozen=True, tag=True):
    """To the child: serve problems `first`..`first + count - 1` of the scenario's task, counted
    from 0, on pools of the sources called `name`; `subject` is what the measurement calls them."""

    name: str
    subject: str
    scenario: Scenario
    first: int
    count: int
    memory: MemoryMode
    device: str
    seed: int | None


class Answered(msgspec.Struct, frozen=True, tag=True):
    """To the child: a file's text (None: no such file), or the paths that hold a text."""

    text: str | None = None
    paths: tuple[str, ...] = ()


class Ready(msgspec.Struct, frozen=True, tag=True):
    """From the child: imports are done and limits are set."""


class Read(msgspec.Struct, frozen=True, tag=True):
    """From the child: the text of a file, please."""

    path: str


class Find(msgspec.Struct, frozen=True, tag=True):
    """From the child: the paths below a folder that hold a text, please."""

    text: str
    under: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """From the child: the answer to a Probe."""

    state: ContractState


class BufferRows(msgspec.Struct, frozen=True):
    """One buffer against its index space: indices `first`..`last` are handed out."""

    buffer: str
    space: str
    rows: int
    first: int
    last: int


class Inspected(msgspec.Struct, frozen=True, tag=True):
    """From the child: the answer to an Inspect, as `poolbisect.probes.inspection` defines it."""

    contracts: tuple[BufferRows, ...] = ()
    questions_to_last_slot: int | None = None
    ended: Ended = Ended.MEASURED
    detail: str = ""


class Ticked(msgspec.Struct, frozen=True, tag=True):
    """From the child: how far serving is."""

    done: int
    right: int
    tokens: int
    seconds: float


class Served(msgspec.Struct, frozen=True, tag=True):
    """From the child: the answer to a Serve."""

    measurement: Measurement


class Fault(StrEnum):
    """Whose fault it is that there is no measurement; never the sources'."""

    USAGE = "usage"
    HOST = "host"


class Refused(msgspec.Struct, frozen=True, tag=True):
    """From the child: it cannot do what was asked, whatever the sources."""

    fault: Fault
    reason: str


class Broken(msgspec.Struct, frozen=True, tag=True):
    """From the child: the probe raised by itself, which says nothing about the sources."""

    reason: str


ToChild: TypeAlias = Probe | Inspect | Serve | Answered
Answer: TypeAlias = Done | Inspected | Served | Refused | Broken
FromChild: TypeAlias = Ready | Read | Find | Ticked | Answer

_encoder = msgspec.msgpack.Encoder()
_to_child = msgspec.msgpack.Decoder(ToChild)
_from_child = msgspec.msgpack.Decoder(FromChild)


class OutOfTimeError(Exception):
    """The child did not say anything in time."""


def send(stream: IO[bytes], message: ToChild | FromChild) -> None:
    """Write one message. OSError when the other side is gone."""
    content = _encoder.encode(message)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def receive_in_child(stream: IO[bytes]) -> ToChild:
    """Read one message. EOFError when the other side is gone."""
    length = _length(stream.read(_LENGTH.size))
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return _to_child.decode(content)


class Hearing:
    """Reads messages from a child with a time limit, in the middle of a message as well."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._file = stream.fileno()
        self._heard = bytearray()

    def next(self, until: float) -> FromChild:
        """The next message, waited for until this time of the monotonic clock.

        Raises:
            OutOfTimeError: it did not come in time.
            EOFError: the child is gone.
            ValueError: what came is no message.
        """
        header = self._take(_LENGTH.size, until)
        return _from_child.decode(self._take(_length(header), until))

    def _take(self, count: int, until: float) -> bytes:
        while len(self._heard) < count:
            readable, _, _ = select.select([self._file], [], [], max(until - time.monotonic(), 0.0))
            if not readable:
                raise OutOfTimeError
            chunk = os.read(self._file, _CHUNK)
            if not chunk:
                raise EOFError
            self._heard += chunk
        taken = bytes(self._heard[:count])
        del self._heard[:count]
        return taken


def _length(header: bytes) -> int:
    if len(header) < _LENGTH.size:
        raise EOFError
    length: int = _LENGTH.unpack(header)[0]
    if length > LONGEST:
        raise ValueError(f"a message of {length} bytes")
    return length
