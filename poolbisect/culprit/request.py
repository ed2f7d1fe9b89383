"""What was asked of a bisect, as its session keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from poolbisect.bisection.outcome import Find
from poolbisect.errors import UsageError
from poolbisect.history.ranges import CommitRange, HistoryRange, commit_range
from poolbisect.history.release_ranges import release_range
from poolbisect.history.repository import Commit, Repository, open_repository
from poolbisect.scenario import Scenario

SCHEMA = 1


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a bisect does, but for its plan, which the journal has.

    `good`, `bad`: commits as full ids or versions, so that a branch that moves changes nothing.
    `options`: those of the probe, in its own form. `inside`: also the commits inside a merge that
    is the culprit. `timeline`: let the contract timeline say where to look first. `skips`,
    `suspects`: as typed. `branch`: the range is a line of commits that a merge brought in, so what
    was typed may be about another one. `note`: what became of an end that was typed.
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
    confidence: float = 0.99
    skips: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    branch: bool = False
    note: str = ""
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


def pinned(request: BisectRequest) -> tuple[BisectRequest, HistoryRange]:
    """The request with its ends as full names, and its range, checked.

    An older end that is not on the newer one's first-parent line is replaced by the commit of that
    line where the two part: every other position must have the one before it as its parent.

    Raises:
        UsageError: as `BisectRequest.open`; or the line does not come from the older end at all.
        InfrastructureError: as `BisectRequest.open`.
    """
    history, note = request.open(), ""
    if isinstance(history, CommitRange):
        history, note = _on_the_line(history, request)
    older, newer = history.entries[0].name, history.entries[-1].name
    good, bad = (older, newer) if request.find is Find.INTRODUCED else (newer, older)
    return msgspec.structs.replace(request, good=good, bad=bad, note=note), history


def _on_the_line(history: CommitRange, request: BisectRequest) -> tuple[CommitRange, str]:
    given, second, last = history.commits[0], history.commits[1], history.commits[-1]
    if second.parents[:1] == (given.sha,):
        return history, ""
    typed = dict(zip(("older", "newer"), request.ends, strict=True))
    if not second.parents:
        raise UsageError(
            f"{typed['older']} is not on the first-parent line of {typed['newer']}, which begins "
            f"at {second}; give a commit of that line"
        )
    line = commit_range(history.repository, second.parents[0], last.sha)
    merge = line.commits[first_with(history.repository, line.commits, given)]
    return line, (
        f"{typed['older']} is not on the first-parent line of {typed['newer']}: it came in with "
        f"{merge.short}; where the two part, {line.commits[0]} is measured in its place"
    )


def first_with(repository: Repository, line: Sequence[Commit], commit: Commit) -> int:
    """The first position on a first-parent line that contains `commit`; the last one does."""
    low, high = 0, len(line) - 1
    while low < high:
        middle = (low + high) // 2
        if repository.is_ancestor(commit, line[middle]):
            high = middle
        else:
            low = middle + 1
    return low


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
