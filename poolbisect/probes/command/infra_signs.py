"""Signs in a log that the host failed and not the command: a short list, which users extend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

BUILT_IN = (
    r"Connection (?:was )?(?:reset|refused|aborted|timed out)",
    r"ECONN(?:RESET|REFUSED|ABORTED)|ETIMEDOUT",
    r"Remote end closed connection|RemoteDisconnected|Server disconnected",
    r"Broken pipe",
    r"Network is unreachable|No route to host",
    r"(?:Temporary failure in|Could not resolve|Name or service not known).{0,80}",
    r"(?:429 Too Many Requests|50[234] (?:Bad Gateway|Service (?:Temporarily )?Unavailable|"
    r"Gateway Time-?out))",
    r"No space left on device|Disk quota exceeded|Read-only file system|Stale file handle",
    r"Too many open files in system|Cannot allocate memory",
    r"CUDA out of memory.{0,400}\bProcess \d+ has",
    r"CUDA-capable device(?:s are busy|.{0,20}is detected)|Unable to determine the device handle",
    r"NVIDIA driver.{0,40}(?:mismatch|not found)|has fallen off the bus",
)
"""Searched for, in any case of letters, in the last lines of the log of a run without a result."""

# With one of these the connection was lost because the other side crashed, which is no accident.
_CRASHES = re.compile(
    r"illegal memory access|device-side assert|Segmentation fault|core dumped",
    re.IGNORECASE,
)
_LINES = 50
_TAIL = 1 << 16


def sign_of_infra(log: Path, more: Sequence[str] = ()) -> str | None:
    """The line of the log's last ones that says that the host failed, shortened; None if none does.

    `more` are patterns of the user's, which also hold where the log shows a crash.
    """
    lines = _last_lines(log)
    text = "\n".join(lines)
    patterns = list(more) if _CRASHES.search(text) else [*BUILT_IN, *more]
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE | re.DOTALL)
        if match:
            return lines[text.count("\n", 0, match.start())].strip()[:200]
    return None


def last_line(log: Path) -> str:
    """The last line of a log that says something, shortened."""
    return next((line.strip()[:200] for line in reversed(_last_lines(log)) if line.strip()), "")


def _last_lines(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(file.tell() - _TAIL, 0))
        text = file.read().decode(errors="replace")
    return text.replace("\r", "\n").splitlines()[-_LINES:]
