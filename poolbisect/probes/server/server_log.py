"""A server's log, read while it grows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_TAIL = 1 << 20


class ServerLog:
    """One log file of a server; what is read of it is its last megabyte."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def text(self, since: int = 0) -> str:
        """What was written from byte `since` on."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(since, self.size - _TAIL))
                return file.read().decode("utf-8", errors="replace")
        except OSError:
            return ""

    def copy(self, since: int, to: Path) -> None:
        """Keep what was written from byte `since` on, whole."""
        try:
            with self.path.open("rb") as source, to.open("wb") as target:
                source.seek(since, os.SEEK_SET)
                shutil.copyfileobj(source, target)
        except OSError:
            return
