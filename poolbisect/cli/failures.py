"""What to say when a file or a stream fails, and when a text is no text."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Sequence
from typing import TextIO

from poolbisect.errors import UsageError

BROKEN_PIPE = 141
"""How a shell calls a program that SIGPIPE ended: 128 + 13."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def show_what_can_be_shown(*streams: TextIO) -> None:
    """A terminal that cannot show a character gets a question mark, instead of an error."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def refuse_unreadable(arguments: Sequence[str]) -> None:
    """UsageError for an argument that is not UTF-8, which no report could hold."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise UsageError(not_utf8(argument)) from error


def not_utf8(text: str) -> str:
    """The sentence for a text with bytes that are no UTF-8, which it shows as \\xNN."""
    printable = os.fsencode(text).decode("utf-8", errors="backslashreplace")
    return f"'{printable}' is not UTF-8, so no report can name it; give it another name"


def sentence(error: OSError) -> str:
    """What failed and why, with the file where it is known."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{_printable(error.filename)}: {reason}"
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        return "the current folder does not exist any more; change to one that does"
    # Python does not say which file a write was to.
    what = "standard output or a file of the report cannot be written"
    if error.errno in _FULL:
        return f"{what}: {reason}; free some space and try again"
    return f"{what}: {reason}"


def nobody_reads(error: OSError | SystemExit) -> bool:
    """Whether standard output or standard error is a pipe whose reader has ended."""
    # click and rich turn that into an exit with status 1, and rich has led stdout nowhere then.
    handled = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    return handled or any(map(_is_broken, (sys.stdout, sys.stderr)))


def let_go(*streams: TextIO) -> None:
    """Lead streams nowhere, so that what is left in them fails no more when Python ends."""
    for stream in streams:
        try:
            descriptor = stream.fileno()
        except (OSError, ValueError):
            continue
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _is_broken(stream: TextIO) -> bool:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _has_current_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _printable(name: object) -> str:
    path = name if isinstance(name, str | bytes) else str(name)
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")
