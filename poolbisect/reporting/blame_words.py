"""The culprit and its buffer in words, for console and JSON alike."""

from __future__ import annotations

from poolbisect.history.ranges import Entry
from poolbisect.timeline.attribution import Attribution


def attribution_words(found: Attribution) -> str:
    """One or two sentences: which buffer, where, which slot has no row, since when."""
    where = f" ({found.file}:{found.line})" if found.file else ""
    if found.rows is None or found.index is None:
        words = f"{found.buffer}{where}: {found.detail.rstrip('.')}."
    else:
        last = f"{found.space} {found.index} has no row"
        if found.last is not None and found.last > found.index:
            last = f"{found.space}s {found.index} to {found.last} have no row"
        words = f"{found.buffer}{where} has {found.rows} rows: {last}."
    if found.since is not None:
        words += f" Its allocation has been in the tree since {entry_words(found.since)}."
    return words


def entry_words(entry: Entry) -> str:
    """A commit or release with its date and title, as far as they are known."""
    details = [f"{entry.date:%Y-%m-%d}"] if entry.date else []
    if entry.title and entry.title != f"sglang {entry.name}":
        details.append(entry.title)
    return f"{entry.short} ({', '.join(details)})" if details else entry.short
