"""What is measured in a night, and in which role: a series follows its role, not a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from poolbisect.errors import PoolbisectError
from poolbisect.history.repository import SHORT
from poolbisect.subject import parse_subject

UNDER_TEST = "under test"
NEWEST_RELEASE = "newest release"
CHECKOUT = "checkout"


@dataclass(frozen=True, slots=True)
class NightSubject:
    """A subject in its role. Where the role is its own name, its past is that of the name."""

    role: str
    subject: str

    @property
    def follows_name(self) -> bool:
        return self.role == self.subject


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of the night that could not be done: of a scenario, or of the night if None."""

    scenario: str | None
    text: str


def plan_subjects(
    subjects: Sequence[str],
    releases: int,
    tip: str | None,
    offered: Callable[[], Sequence[str]],
) -> tuple[list[NightSubject], list[Failure]]:
    """All subjects of a night, each once; releases that cannot be listed are a failure.

    The first of `subjects` is under test, others are series of their own; `tip` is the full id of
    a checkout's commit. UsageError where a name names no subject.
    """
    names = list(dict.fromkeys(parse_subject(name).name for name in subjects))
    planned = [NightSubject(UNDER_TEST, names[0]), *(NightSubject(n, n) for n in names[1:])]
    failures: list[Failure] = []
    if tip is not None:
        planned.append(NightSubject(CHECKOUT, f"commit:{tip}"))
    if releases:
        try:
            newest = newest_releases(offered(), releases)
        except PoolbisectError as error:
            failures.append(Failure(None, f"the newest releases are not known: {error}"))
            newest = []
        for number, version in enumerate(newest):
            name = f"release:{version}"
            planned.append(NightSubject(NEWEST_RELEASE if number == 0 else name, name))
    seen: dict[str, NightSubject] = {}
    for one in planned:
        seen.setdefault(one.subject, one)
    return list(seen.values()), failures


def short_name(subject: str) -> str:
    """A subject for people: a commit by the beginning of its id."""
    kind, _, revision = subject.partition(":")
    return f"{kind}:{revision[:SHORT]}" if kind == "commit" else subject


def newest_releases(versions: Sequence[str], count: int) -> list[str]:
    """The newest `count` of these versions, newest first, pre-releases left out."""
    known: list[tuple[Version, str]] = []
    for text in versions:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            known.append((version, text))
    return [text for _, text in sorted(known, reverse=True)[:count]]
