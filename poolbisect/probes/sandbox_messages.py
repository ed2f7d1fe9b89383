"""What a sandbox and its child say to each other: length-prefixed MessagePack, typed both ways.

Not pickle: sources under test run in the child, and unpickling what they might send would run it
here.
"""

from __future__ import annotations

import struct
from typing import IO, TypeAlias

import msgspec

from poolbisect.probes.facets import ContractState, PoolPlan

_LENGTH = struct.Struct("!I")
LONGEST = 1 << 26
"""Bytes of the longest message taken, well above any source file."""


class Probe(msgspec.Struct, frozen=True, tag=True):
    """To the child: judge the sources called `name`."""

    name: str
    plans: tuple[PoolPlan, ...]


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


class Broken(msgspec.Struct, frozen=True, tag=True):
    """From the child: the probe raised by itself, which says nothing about the sources."""

    reason: str


ToChild: TypeAlias = Probe | Answered
FromChild: TypeAlias = Ready | Read | Find | Done | Broken

_encoder = msgspec.msgpack.Encoder()
_to_child = msgspec.msgpack.Decoder(ToChild)
_from_child = msgspec.msgpack.Decoder(FromChild)


def send(stream: IO[bytes], message: ToChild | FromChild) -> None:
    """Write one message. OSError when the other side is gone."""
    content = _encoder.encode(message)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def receive_in_child(stream: IO[bytes]) -> ToChild:
    """Read one message. EOFError when the other side is gone."""
    return _to_child.decode(_content(stream))


def receive_from_child(stream: IO[bytes]) -> FromChild:
    """Read one message.

    Raises:
        EOFError: the child is gone.
        ValueError: what came is no message.
    """
    return _from_child.decode(_content(stream))


def _content(stream: IO[bytes]) -> bytes:
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    if length > LONGEST:
        raise ValueError(f"a message of {length} bytes")
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content
