"""Where a night and its parts are written: <out>/<part>/<UTC time>, as `run` and `bisect` do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from poolbisect.errors import UsageError

NIGHTLY = "nightly"
_MOST_IN_ONE_SECOND = 1000


def new_folder(out: Path, part: str) -> Path:
    """A new folder of a part of the night (`nightly`, a scenario, `bisect`), no other process's.

    UsageError when it cannot be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    home = out / "".join(c if c.isalnum() or c in "-_." else "-" for c in part)
    try:
        home.mkdir(parents=True, exist_ok=True)
        for number in range(1, _MOST_IN_ONE_SECOND):
            folder = home / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--out {out}: reports cannot be written there ({reason})") from error
    raise UsageError(f"--out {out}: {_MOST_IN_ONE_SECOND} of {part} in one second")
