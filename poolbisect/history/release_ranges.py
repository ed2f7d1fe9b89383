"""Released versions as a history: the same questions, answered in versions."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from packaging.version import InvalidVersion, Version

from poolbisect.errors import UsageError
from poolbisect.history.ranges import Entry, HistoryRange
from poolbisect.history.releases import PROJECT, WheelTree, fetch_release, list_releases
from poolbisect.history.source_tree import SourceTree

_EPOCH_OF_ZIP = 1980  # what a build without a clock writes


@dataclass(frozen=True)
class ReleaseRange(HistoryRange):
    """Versions from an older one to a newer one, both included; wheels come as they are read."""

    versions: tuple[str, ...]
    fetch: Callable[[str], WheelTree] = fetch_release
    kind = "release"
    _dates: dict[str, datetime | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def entries(self) -> Sequence[Entry]:
        """The versions; a date is known once the wheel has been read."""
        return [
            Entry(version, version, f"{PROJECT} {version}", self._dates.get(version))
            for version in self.versions
        ]

    @property
    def outside(self) -> Sequence[Entry]:
        return ()

    def parents(self, position: int) -> tuple[int, ...]:
        return (position - 1,) if 0 < position < len(self.versions) else ()

    def tree(self, position: int) -> SourceTree:
        version = self.versions[position]
        tree = self.fetch(version)
        self._dates[version] = _build_date(tree)
        return tree

    def __len__(self) -> int:
        return len(self.versions)


def release_range(
    older: str,
    newer: str,
    *,
    pre_releases: bool = False,
    older_option: str = "--good",
    newer_option: str = "--bad",
    available: Sequence[str] | None = None,
) -> ReleaseRange:
    """The versions from `older` to `newer` that the package index offers, in order.

    Pre-releases take part when asked for or when they are an end. `available` are the versions
    on offer, by default asked of the index.

    Raises:
        UsageError: an end is no version or not on offer, both are the same, or they are the wrong
            way round.
        InfrastructureError: the index cannot be reached.
    """
    first = _version(older, older_option)
    last = _version(newer, newer_option)
    if first == last:
        raise UsageError(
            f"{older_option} {older} and {newer_option} {newer} are the same release; "
            "give two different ones."
        )
    offered = sorted({Version(v) for v in (list_releases() if available is None else available)})
    for option, text, end in ((older_option, older, first), (newer_option, newer, last)):
        if end not in offered:
            near = min(offered, key=lambda version: _distance(version, end)) if offered else None
            hint = f"; the nearest is {near}" if near else ""
            raise UsageError(
                f"{option} {text}: there is no {PROJECT} {text} on your package index{hint}."
            )
    if first > last:
        other = "introduced" if older_option == "--bad" else "fixed"
        raise UsageError(
            f"{older_option} {older} is newer than {newer_option} {newer}; swap the two, "
            f"or look for the first release that {other} it with `bisect --find {other}`."
        )
    inside = [
        version
        for version in offered
        if first <= version <= last
        and (pre_releases or not version.is_prerelease or version in (first, last))
    ]
    return ReleaseRange(tuple(str(version) for version in inside))


def _build_date(tree: WheelTree) -> datetime | None:
    """When a wheel was built, as far as its newest member says; None if it does not."""
    with zipfile.ZipFile(tree.wheel) as archive:
        newest = max(member.date_time for member in archive.infolist())
    return datetime(*newest, tzinfo=UTC) if newest[0] > _EPOCH_OF_ZIP else None


def _version(text: str, option: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise UsageError(
            f"{option} {text} is not a release version; write it as in 0.5.12."
        ) from error


def _distance(version: Version, wanted: Version) -> tuple[int, ...]:
    ours = (*version.release, 0, 0, 0)[:3]
    theirs = (*wanted.release, 0, 0, 0)[:3]
    return tuple(abs(a - b) for a, b in zip(ours, theirs, strict=True))
