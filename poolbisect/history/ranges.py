"""Ranges of history to search: checked before anything costly, each mistake with its own message.

A range is a list of positions, oldest first. Position 0 is the older end, the last one the newer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from poolbisect.errors import UsageError
from poolbisect.history.commits import CommitTree
from poolbisect.history.repository import Commit, Repository
from poolbisect.history.source_tree import SourceTree


@dataclass(frozen=True, slots=True)
class Entry:
    """One position for people: `name` is a commit's full id or a version, `date` may be unknown."""

    name: str
    short: str
    title: str
    date: datetime | None


class HistoryRange(ABC):
    """What the timeline and the bisect know of a history, commits or releases."""

    kind: str
    """`commit` or `release`: what a position is."""

    @property
    @abstractmethod
    def entries(self) -> Sequence[Entry]:
        """The positions, oldest first; two or more."""

    @property
    @abstractmethod
    def outside(self) -> Sequence[Entry]:
        """Parents of positions that lie outside the range and are not position 0."""

    @abstractmethod
    def parents(self, position: int) -> tuple[int, ...]:
        """What a position is to be compared with; n and up are `outside`, n the positions."""

    @abstractmethod
    def tree(self, position: int) -> SourceTree:
        """The sources at a position, or at one outside."""

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True)
class CommitRange(HistoryRange):
    """Commits from an older end to a newer one, both included, oldest first.

    `boundary`: parents of `commits` that the older end contains, and that are not that end.
    """

    repository: Repository
    commits: tuple[Commit, ...]
    boundary: tuple[Commit, ...] = ()
    all_parents: bool = False
    kind = "commit"
    _positions: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        everything = (*self.commits, *self.boundary)
        positions = {commit.sha: index for index, commit in enumerate(everything)}
        object.__setattr__(self, "_positions", positions)

    @property
    def entries(self) -> Sequence[Entry]:
        return [entry_of(commit) for commit in self.commits]

    @property
    def outside(self) -> Sequence[Entry]:
        return [entry_of(commit) for commit in self.boundary]

    def parents(self, position: int) -> tuple[int, ...]:
        if not 0 < position < len(self.commits):
            return ()
        found = _parents(self.commits[position], self.all_parents)
        return tuple(self._positions[sha] for sha in found if sha in self._positions)

    def tree(self, position: int) -> SourceTree:
        return CommitTree(self.repository, (*self.commits, *self.boundary)[position])

    def position(self, commit: Commit) -> int | None:
        """Where a commit is in the range, None if it is not in it."""
        found = self._positions.get(commit.sha)
        return found if found is not None and found < len(self.commits) else None

    def __len__(self) -> int:
        return len(self.commits)


def commit_range(
    repository: Repository,
    older: str,
    newer: str,
    *,
    all_parents: bool = False,
    older_option: str = "--good",
    newer_option: str = "--bad",
) -> CommitRange:
    """The commits from `older` to `newer`, on the newer one's first-parent line by default.

    With `all_parents` commits inside merges are positions of their own, parents before children.
    The options are what messages call the two ends.

    Raises:
        UsageError: an end is no commit or not just one, both are the same, the ends are the wrong
            way round or not on one line of history, or a shallow clone ends inside the range.
    """
    first, last = repository.commit(older), repository.commit(newer)
    if first.sha == last.sha:
        raise UsageError(
            f"{older_option} {older} and {newer_option} {newer} are the same commit, {first}; "
            "give two different ones."
        )
    if not repository.is_ancestor(first, last):
        _refuse(repository, (older_option, older, first), (newer_option, newer, last))
    lines = [] if all_parents else ["--first-parent"]
    commits = tuple(
        repository.commits([*lines, "--topo-order", "--reverse", last.sha, f"^{first.sha}"])
    )
    known = {first.sha} | {commit.sha for commit in commits}
    beyond = dict.fromkeys(
        sha for commit in commits for sha in _parents(commit, all_parents) if sha not in known
    )
    boundary = tuple(repository.commits(["--no-walk=unsorted", *beyond])) if beyond else ()
    return CommitRange(repository, (first, *commits), boundary, all_parents)


def _parents(commit: Commit, all_parents: bool) -> tuple[str, ...]:
    return commit.parents if all_parents else commit.parents[:1]


def _refuse(
    repository: Repository,
    older: tuple[str, str, Commit],
    newer: tuple[str, str, Commit],
) -> None:
    older_option, older_name, first = older
    newer_option, newer_name, last = newer
    if repository.is_ancestor(last, first):
        other = "introduced" if older_option == "--bad" else "fixed"
        raise UsageError(
            f"{older_option} {older_name} is newer than {newer_option} {newer_name}; swap the two, "
            f"or look for the first commit that {other} it with `bisect --find {other}`."
        )
    if repository.is_shallow:
        raise UsageError(
            f"{older_option} {older_name} cannot be reached from {newer_option} {newer_name}: "
            f"{repository.folder} is a shallow clone whose older history is missing; "
            f"{repository.unshallow}."
        )
    base = repository.merge_base(first, last)
    if base is None:
        raise UsageError(
            f"{older_option} {older_name} and {newer_option} {newer_name} have no common history; "
            "give two commits of one branch."
        )
    raise UsageError(
        f"{older_option} {older_name} is not an ancestor of {newer_option} {newer_name}: their "
        f"histories part at {base}; start there with {older_option} {base.short}."
    )


def entry_of(commit: Commit) -> Entry:
    """A commit as people see a position."""
    return Entry(commit.sha, commit.short, commit.title, commit.commit_date)
