"""Bytes of a file as text, whatever wrote them."""

from __future__ import annotations

import codecs
from pathlib import Path

from poolbisect.errors import UsageError
from poolbisect.formats.score_file import Source

# PowerShell's `>` writes UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def read_source(path: Path) -> Source:
    """The file as text. UsageError if it cannot be read."""
    try:
        return source_of(path, path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from error


def source_of(path: Path, data: bytes) -> Source:
    """Bytes as text: UTF-8, or what the byte order mark says; other bytes become U+FFFD."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return Source(path, data[len(mark) :].decode(encoding, errors="replace"))
    return Source(path, data.decode("utf-8", errors="replace"))
