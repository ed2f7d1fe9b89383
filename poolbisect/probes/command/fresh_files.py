"""Files that an attempt itself has written, told from those of an earlier one."""

from __future__ import annotations

import glob
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OUR_RUN_ID = re.compile(r"[0-9a-f]{32}")
_COARSE_NS = 2_000_000_000  # file systems exist that count in two seconds

_Identity = tuple[int, int, int, int, int]


class StaleError(Exception):
    """There is no result of this attempt; the message says what there is instead."""


@dataclass(frozen=True, slots=True)
class Before:
    """What a path or pattern fitted before an attempt, and when the attempt began as files count
    time."""

    path: str
    pattern: str
    known: dict[str, _Identity]
    began_ns: int
    device: int


def look_before(path: str, attempt: Path, pattern: str | None = None) -> Before:
    """Look at what there is; `attempt` is the attempt's own folder.

    `pattern` is the path as a glob, in which what is not the user's to mean as one is escaped.
    """
    pattern = path if pattern is None else pattern
    known = {found: _identity(found) for found in _matches(path, pattern)}
    mark = attempt / "began"
    mark.touch()
    status = mark.stat()
    return Before(path, pattern, known, status.st_mtime_ns, status.st_dev)


def fresh_file(before: Before) -> Path:
    """The one file that matches and was written since.

    Raises:
        StaleError: there is none, only one that is older, or several.
    """
    now = {path: _identity(path) for path in _matches(before.path, before.pattern)}
    if not now and os.path.isdir(before.path):
        raise StaleError(f"{before.path} is a folder; name the file in it")
    if not now:
        raise StaleError(f"{before.path}: the command did not write it")
    fresh, old = [], ""
    for path, identity in now.items():
        if before.known.get(path) == identity:
            old = f"{path} is left from before this run, which did not write it"
        elif _is_older(identity, before):
            old = f"{path} is older than this run"
        else:
            fresh.append(path)
    if not fresh:
        raise StaleError(old)
    if len(fresh) > 1:
        names = ", ".join(sorted(os.path.basename(path) for path in fresh)[:4])
        raise StaleError(f"{before.path} fits several files ({names}); name one")
    return Path(fresh[0])


def check_run_id(path: Path, run_id: str) -> None:
    """StaleError if a JSON file, or a line of a JSONL file, names another run of ours."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return  # whoever reads it next says why
    for part in (text, *text.splitlines()):
        if '"run_id"' not in part and '"poolbisect_run_id"' not in part:
            continue
        named = _run_id(part)
        if named is not None and named != run_id:
            raise StaleError(f"{path} is of run {named}, and this is run {run_id}")


def _run_id(text: str) -> str | None:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("poolbisect_run_id"), str):
        return str(document["poolbisect_run_id"])
    named = document.get("run_id")
    return named if isinstance(named, str) and _OUR_RUN_ID.fullmatch(named) else None


def _matches(path: str, pattern: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    return [found for found in glob.glob(pattern, recursive=True) if os.path.isfile(found)]


def _identity(path: str) -> _Identity:
    status = os.stat(path)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_older(identity: _Identity, before: Before) -> bool:
    device, _, _, modified, _ = identity
    tolerance = 0 if device == before.device else _COARSE_NS
    return modified < before.began_ns - tolerance
