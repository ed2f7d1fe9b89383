"""A bisect on disk: its request, its journal, and one folder an attempt."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.bisection import journal
from poolbisect.bisection.journal import Journal, Record
from poolbisect.bisection.plan import Plan
from poolbisect.culprit.interface import Attempt
from poolbisect.culprit.request import BisectRequest, encode, read_request
from poolbisect.errors import UsageError

REQUEST, JOURNAL, ATTEMPTS = "session.json", "journal.jsonl", "attempts"
TIMELINE = "timeline.json"


class Session:
    """The folder of one bisect; `attempts/` has one folder for each probe that was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def journal(self) -> Path:
        return self.folder / JOURNAL

    @property
    def has_begun(self) -> bool:
        """Whether the search has begun; a session that was cut off before has a request only."""
        try:
            return b"\n" in self.journal.read_bytes()
        except OSError:
            return self.journal.exists()  # what it is, `resume` says

    @property
    def is_of_switches(self) -> bool:
        """Whether the folder is that of `bisect --config`."""
        try:
            return b'"config_session"' in self.journal.read_bytes().partition(b"\n")[0]
        except OSError:
            return False

    def keep(self, request: BisectRequest) -> None:
        """Write down what was asked, before anything is done about it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _replace(self.folder / REQUEST, encode(request))

    @contextmanager
    def begin(self, names: Sequence[str], plan: Plan, command: Sequence[str]) -> Iterator[Journal]:
        """A new journal; holds its lock."""
        with journal.create(self.journal, names, plan, command=command, at=now()) as opened:
            yield opened

    @contextmanager
    def resume(self, names: Sequence[str]) -> Iterator[Journal]:
        """An earlier session, where it was left; holds its lock."""
        with journal.resume(self.journal, names, at=now()) as opened:
            yield opened

    def request(self) -> BisectRequest:
        return read_request(self.folder / REQUEST)

    def record(self) -> Record:
        return journal.read(self.journal)

    def keep_timeline(self, document: Mapping[str, Any]) -> None:
        content = msgspec.json.format(msgspec.json.encode(document))
        _replace(self.folder / TIMELINE, content + b"\n")

    def timeline(self) -> dict[str, Any] | None:
        """The contract timeline that was taken at the start, as `timeline --json` prints it."""
        try:
            return msgspec.json.decode(
                (self.folder / TIMELINE).read_bytes(), type=dict[str, Any] | None
            )
        except (OSError, msgspec.MsgspecError):
            return None

    def attempt(self, label: str) -> Attempt:
        """A new attempt; its folder's number is one more than the largest there is."""
        parent = self.folder / ATTEMPTS
        parent.mkdir(parents=True, exist_ok=True)
        numbers = [int(path.name[:4]) for path in parent.iterdir() if path.name[:4].isdigit()]
        number = max(numbers, default=0) + 1
        folder = parent / f"{number:04d}-{label.replace('/', '-')}"
        folder.mkdir()
        return Attempt(number, uuid.uuid4().hex, folder)

    def keep_evidence(self, attempt: Attempt, evidence: Mapping[str, Any]) -> None:
        """Write an attempt's evidence down, before the journal says that it ended."""
        content = msgspec.json.encode({"run_id": attempt.run_id, **evidence})
        (attempt.folder / "evidence.json").write_bytes(msgspec.json.format(content) + b"\n")

    def evidence(self, number: int) -> dict[str, Any]:
        """What an attempt kept; empty if it was cut off before."""
        for folder in (self.folder / ATTEMPTS).glob(f"{number:04d}-*"):
            try:
                found: dict[str, Any] = msgspec.json.decode(
                    (folder / "evidence.json").read_bytes(), type=dict[str, Any]
                )
            except (OSError, msgspec.MsgspecError):
                continue
            return {**found, "folder": str(folder.relative_to(self.folder))}
        return {}


def latest_session(out: Path) -> Session:
    """The newest bisect below `out`. UsageError if there is none."""
    found = sorted((out / "bisect").glob(f"*/{REQUEST}"), key=lambda path: path.parent.name)
    if not found:
        raise UsageError(
            f"there is no bisect below {out / 'bisect'}; give its folder, or start one"
        )
    return Session(found[-1].parent)


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, whenever this process is killed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
