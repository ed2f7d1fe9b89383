"""The folders that runs, bisects, timelines and nights write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from poolbisect.errors import PoolbisectError, UsageError


@contextmanager
def report_folder(out: Path, scenario: str) -> Iterator[Path]:
    """A new folder `out`/`scenario`/<UTC time>, made before anything costly is run.

    UsageError when it cannot be made. If the run ends in an error and left nothing in it, the
    folder is taken away again.
    """
    folder = new_folder(out, scenario)
    try:
        yield folder
    except (PoolbisectError, KeyboardInterrupt):
        with suppress(OSError):
            folder.rmdir()
            folder.parent.rmdir()
        raise


def new_folder(out: Path, part: str) -> Path:
    """A new folder `out`/`part`/<UTC time>, nobody else's. UsageError when it cannot be made."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        (out / part).mkdir(parents=True, exist_ok=True)
        for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
            folder = out / part / f"{stamp}{suffix}"
            with suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--out {out}: reports cannot be written there ({reason})") from error
    raise UsageError(f"--out {out}: more than 999 runs of {part} in one second")
