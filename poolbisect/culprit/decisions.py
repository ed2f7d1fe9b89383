"""What a person decides beside the probes: commits to skip, to forget and to suspect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from poolbisect.bisection.journal import Journal
from poolbisect.culprit.session import now
from poolbisect.errors import UsageError
from poolbisect.history.ranges import CommitRange, HistoryRange


@dataclass(frozen=True, slots=True)
class Decisions:
    """Revisions as typed; `skips` may be ranges `A..B`, without A, as git reads them."""

    skips: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Decisions as positions of a range. `deeper`: those on commits that only merges of the range
    bring in, for the search inside one."""

    skips: tuple[tuple[int, int], ...] = ()
    forgets: tuple[int, ...] = ()
    suspects: tuple[int, ...] = ()
    deeper: Decisions = field(default_factory=Decisions)


def resolve_for_branch(history: HistoryRange, decisions: Decisions) -> Resolved:
    """Those decisions that are about a branch of a merge; the others are about somewhere else."""
    mine: dict[str, list[str]] = {"skips": [], "forgets": [], "suspects": []}
    for kind, texts in mine.items():
        for text in getattr(decisions, kind):
            one = Decisions(**{kind: (text,)})
            with suppress(UsageError):
                resolve(history, one, inside=True)
                texts.append(text)
    chosen = Decisions(*(tuple(texts) for texts in mine.values()))
    return resolve(history, chosen, inside=True)


def resolve(history: HistoryRange, decisions: Decisions, *, inside: bool = False) -> Resolved:
    """Check all decisions, before anything is measured.

    UsageError for a revision that does not exist, an end of the range, or, unless merges are
    looked into (`inside`), one that is not in the range.
    """
    deeper: dict[str, list[str]] = {"skips": [], "forgets": [], "suspects": []}

    def positions(kind: str, texts: Sequence[str], option: str) -> list[int]:
        found = []
        for text in texts:
            if inside and _is_deeper(history, text):
                deeper[kind].append(text)
            else:
                found.append(position_of(history, text, option))
        return found

    skips = []
    for text in decisions.skips:
        if inside and all(_is_deeper(history, one) for one in _sides(text)):
            deeper["skips"].append(text)
            continue
        first, last = _span(history, text)
        if first == 0 or last == len(history) - 1:
            raise UsageError(
                f"--skip {text} takes an end of the range with it; start with another end instead"
            )
        skips.append((first, last))
    return Resolved(
        tuple(skips),
        tuple(positions("forgets", decisions.forgets, "--forget")),
        tuple(positions("suspects", decisions.suspects, "--suspect")),
        Decisions(*(tuple(texts) for texts in deeper.values())),
    )


def take(journal: Journal, decided: Resolved) -> None:
    """Write the decisions into the journal."""
    for position in decided.forgets:
        journal.forget(position, now())
    for first, last in decided.skips:
        journal.skip(first, last, now())
    for position in decided.suspects:
        journal.suspect(position, now())


def _is_deeper(history: HistoryRange, text: str) -> bool:
    """Whether a revision is in the newer end's history, but neither in the range nor before it."""
    if not isinstance(history, CommitRange):
        return False
    repository, commit = history.repository, history.repository.commit(text)
    return (
        history.position(commit) is None
        and repository.is_ancestor(commit, history.commits[-1])
        and not repository.is_ancestor(commit, history.commits[0])
    )


def position_of(history: HistoryRange, text: str, option: str) -> int:
    """Where a revision or version is. UsageError when it is not in the range."""
    position: int | None
    if isinstance(history, CommitRange):
        commit = history.repository.commit(text)
        position = history.position(commit)
        named = str(commit)
    else:
        names = [entry.name for entry in history.entries]
        named = _version(text)
        position = names.index(named) if named in names else None
    if position is None:
        raise UsageError(f"{option} {text}: {named} is not in the range {_ends(history.entries)}")
    return position


def _span(history: HistoryRange, text: str) -> tuple[int, int]:
    sides = _sides(text)
    if len(sides) == 1:
        position = position_of(history, text, "--skip")
        return position, position
    first = position_of(history, sides[0], "--skip") + 1
    last = position_of(history, sides[1], "--skip")
    if first > last:
        raise UsageError(f"--skip {text}: there is nothing in it; the older revision comes first")
    return first, last


def _sides(text: str) -> tuple[str, ...]:
    before, dots, after = text.partition("..")
    if not dots:
        return (text,)
    if not before or not after or after.startswith("."):
        raise UsageError(f"--skip {text}: give a revision, or a range with both ends as in A..B")
    return before, after


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        return text


def _ends(entries: Sequence[object]) -> str:
    first, last = entries[0], entries[-1]
    return f"{getattr(first, 'short', first)}..{getattr(last, 'short', last)}"
