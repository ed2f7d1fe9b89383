"""What a person decides beside the probes: commits to skip, to forget and to suspect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def take(journal: Journal, history: HistoryRange, decisions: Decisions) -> None:
    """Write the decisions into the journal, all of them or, with a UsageError, none."""
    skips = [_span(history, text) for text in decisions.skips]
    forgets = [position_of(history, text, "--forget") for text in decisions.forgets]
    suspects = [position_of(history, text, "--suspect") for text in decisions.suspects]
    for text, (first, last) in zip(decisions.skips, skips, strict=True):
        if first == 0 or last == len(history) - 1:
            raise UsageError(
                f"--skip {text} takes an end of the range with it; start with another end instead"
            )
    for position in forgets:
        journal.forget(position, now())
    for first, last in skips:
        journal.skip(first, last, now())
    for position in suspects:
        journal.suspect(position, now())


def position_of(history: HistoryRange, text: str, option: str) -> int:
    """Where a revision or version is. UsageError when it is not in the range."""
    position: int | None
    if isinstance(history, CommitRange):
        commit = history.repository.commit(text)
        position = history.position(commit)
        named = str(commit)
    else:
        names = [entry.name for entry in history.entries]
        position = names.index(text) if text in names else None
        named = text
    if position is None:
        raise UsageError(f"{option} {text}: {named} is not in the range {_ends(history.entries)}")
    return position


def _span(history: HistoryRange, text: str) -> tuple[int, int]:
    before, dots, last = text.partition("..")
    if not dots:
        position = position_of(history, text, "--skip")
        return position, position
    first = position_of(history, before, "--skip") + 1
    final = position_of(history, last, "--skip")
    if first > final:
        raise UsageError(f"--skip {text}: there is nothing in it; the older revision comes first")
    return first, final


def _ends(entries: Sequence[object]) -> str:
    first, last = entries[0], entries[-1]
    return f"{getattr(first, 'short', first)}..{getattr(last, 'short', last)}"
