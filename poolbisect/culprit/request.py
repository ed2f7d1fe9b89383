"""What was asked of a bisect, as its session keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from poolbisect.bisection.outcome import Find
from poolbisect.errors import UsageError
from poolbisect.history.ranges import HistoryRange, commit_range
from poolbisect.history.release_ranges import release_range
from poolbisect.history.repository import open_repository
from poolbisect.scenario import Scenario

SCHEMA = 1


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a bisect does, but for its plan, which the journal has.

    `good`, `bad`: commits as full ids or versions, so that a branch that moves changes nothing.
    `options`: those of the probe, in its own form. `inside`: also the commits inside a merge that
    is the culprit. `timeline`: let the contract timeline say where to look first.
    """

    history: Literal["commit", "release"]
    good: str
    bad: str
    find: Find = Find.INTRODUCED
    repository: str | None = None
    pre_releases: bool = False
    inside: bool = False
    scenario: Scenario | None = None
    probe: str = "contract"
    options: dict[str, Any] = {}
    timeline: bool = False
    schema: int = SCHEMA

    @property
    def ends(self) -> tuple[str, str]:
        """The older and the newer end."""
        if self.find is Find.INTRODUCED:
            return self.good, self.bad
        return self.bad, self.good

    def open(self) -> HistoryRange:
        """The range between the ends, checked.

        Raises:
            UsageError: as `commit_range` and `release_range`, in terms of --good and --bad.
            InfrastructureError: the repository or the package index cannot be read.
        """
        older, newer = self.ends
        introduced = self.find is Find.INTRODUCED
        older_option, newer_option = ("--good", "--bad") if introduced else ("--bad", "--good")
        if self.history == "release":
            return release_range(
                older,
                newer,
                pre_releases=self.pre_releases,
                older_option=older_option,
                newer_option=newer_option,
            )
        return commit_range(
            open_repository(Path(self.repository or ".")),
            older,
            newer,
            older_option=older_option,
            newer_option=newer_option,
        )


def encode(request: BisectRequest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(request), indent=2) + b"\n"


def read_request(path: Path) -> BisectRequest:
    """A session's request. UsageError names the file and what is wrong with it."""
    try:
        request = msgspec.json.decode(path.read_bytes(), type=BisectRequest)
    except OSError as error:
        raise UsageError(
            f"{path}: {(error.strerror or str(error)).lower()}; start a bisect without --resume"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: not a session of a bisect ({error}); start a bisect without --resume"
        ) from error
    if request.schema != SCHEMA:
        raise UsageError(
            f"{path}: schema {request.schema}, this version reads {SCHEMA}; resume with the "
            "version that wrote it"
        )
    return request
