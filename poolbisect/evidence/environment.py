"""What changed around a night besides the score: code, dependencies, runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One night: its score (0 to 1) and what it ran with, None where that was not recorded.

    `dependencies` maps a package to its version; `revision` is that of the code under test.
    """

    score: float
    runner: str | None = None
    dependencies: Mapping[str, str] | None = None
    revision: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise ValueError(f"a score must lie between 0 and 1, got {self.score}")


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A dependency before and after; None where it was not there."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.old or 'absent'} → {self.new or 'absent'}"


def version_changes(before: SeriesPoint, after: SeriesPoint) -> tuple[VersionChange, ...]:
    """Dependencies that differ between two nights, by name; empty if a list was not recorded."""
    if before.dependencies is None or after.dependencies is None:
        return ()
    old, new = before.dependencies, after.dependencies
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return tuple(VersionChange(name, old.get(name), new.get(name)) for name in names)


def code_changed(points: Sequence[SeriesPoint]) -> bool | None:
    """Whether the revision differs among the nights; None if one of them was not recorded."""
    revisions = {point.revision for point in points}
    return None if None in revisions else len(revisions) > 1


def runner_changed(before: SeriesPoint, after: SeriesPoint) -> bool:
    """Whether two nights are known to have run on different runners."""
    known = before.runner is not None and after.runner is not None
    return known and before.runner != after.runner
