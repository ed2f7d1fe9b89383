"""Which buffers are short, what was reached behind them, and whose bytes those are."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.memory.placement import rounded
from poolbisect.reporting import numbers
from poolbisect.reporting.charts.arena import Extent, ShortBuffer, arena_chart
from poolbisect.reporting.documents.run import OutOfRange, Placed, Result, RunDocument, ShortIndex
from poolbisect.reporting.model import (
    Block,
    Cell,
    Column,
    Figure,
    Prose,
    Section,
    Table,
    Tone,
    in_words,
)

_BEHIND = 1 << 30
"""Bytes: more than a chart shows."""


def memory_section(document: RunDocument) -> Section | None:
    """None when no buffer was asked about and nothing was watched."""
    blocks: list[Block] = []
    for result in document.results:
        blocks += _maps(result)
    contract = _contract_table(document)
    if contract is not None:
        blocks.append(contract)
    for result in document.results:
        blocks += _accesses(result)
    short = any(one.missing_rows for result in document.results for one in result.contract)
    title = "Memory: the short buffer" if short else "Memory"
    return Section("memory", title, tuple(blocks)) if blocks else None


def _maps(result: Result) -> list[Block]:
    figures: list[Block] = []
    placed = {one.name: one for one in result.out_of_range.arena}
    for name in dict.fromkeys(one.buffer for one in result.out_of_range.buffers):
        own = [one for one in result.out_of_range.buffers if one.buffer == name and one.index >= 0]
        if name not in placed or not own:
            continue
        at = placed[name]
        indices = [one.index for one in own]
        short = ShortBuffer(
            Extent(name, at.offset, at.offset + at.bytes), at.rows, min(indices), max(indices)
        )
        caption = (
            f"{result.subject}. Upper row: its rows, as its users index them; lower row: the "
            "buffers that own the same bytes. Framed: what was reached past the end."
        )
        extents = _extents(result.out_of_range.arena, own)
        figures.append(Figure(arena_chart(short, extents), caption))
    if figures:
        figures.append(_arena_table(result.out_of_range.arena, result.subject))
    return figures


def _extents(placed: Sequence[Placed], accesses: Sequence[ShortIndex]) -> list[Extent]:
    """The buffers and the gaps between them: rounding to 512 B, and memory nobody holds.

    Behind the last one is what the guard saw hit there, if anything.
    """
    extents: list[Extent] = []
    for at, one in enumerate(placed):
        end = one.offset + one.bytes
        extents.append(Extent(one.name, one.offset, end))
        following = (
            placed[at + 1].offset if at + 1 < len(placed) else one.offset + rounded(one.bytes)
        )
        slack = min(following, one.offset + rounded(one.bytes))
        if slack > end:
            extents.append(Extent("rounding slack", end, slack, owned=False))
        if following > slack:
            extents.append(Extent("free memory", slack, following, owned=False))
    names = {one.name for one in placed} | {"rounding slack"}
    behind = [hit for one in accesses for hit in one.hit if hit not in names]
    if behind and extents:
        end = extents[-1].end
        extents.append(Extent(behind[-1], end, end + _BEHIND, owned=False))
    return extents


def _arena_table(placed: Sequence[Placed], subject: str) -> Table:
    return Table(
        f"Buffers around it ({subject}), in order of address",
        (
            Column("buffer"),
            Column("first byte", numeric=True),
            Column("bytes", numeric=True),
            Column("rows", numeric=True),
        ),
        tuple(
            (
                Cell(one.name, code=True),
                Cell(f"{one.offset:,}", sort=one.offset),
                Cell(f"{one.bytes:,}", sort=one.bytes),
                Cell(f"{one.rows:,}", sort=one.rows),
            )
            for one in placed
        ),
        folded=True,
    )


def _contract_table(document: RunDocument) -> Table | None:
    rows = [
        (
            Cell(one.buffer, code=True),
            Cell(result.subject, code=True),
            Cell(one.space),
            Cell(f"{one.rows:,}", sort=one.rows),
            Cell(f"{one.last_index:,}", sort=one.last_index),
            Cell(
                f"short by {numbers.plural(one.missing_rows, 'row')}"
                if one.missing_rows
                else "long enough",
                sort=one.missing_rows,
                tone=Tone.BAD if one.missing_rows else Tone.GOOD,
            ),
            Cell(numbers.count(one.short_from), sort=one.short_from),
        )
        for result in document.results
        for one in result.contract
    ]
    if not rows:
        return None
    return Table(
        "The contract, before anything ran: rows against the largest index",
        (
            Column("buffer"),
            Column("subject"),
            Column("indexed by"),
            Column("rows", numeric=True),
            Column("largest index", numeric=True),
            Column("state"),
            Column("short from", numeric=True),
        ),
        tuple(rows),
    )


def _accesses(result: Result) -> list[Block]:
    seen = result.out_of_range
    blocks: list[Block] = []
    if not seen.watched:
        if result.ended not in ("not_applicable", "build_failed"):
            blocks.append(Prose((f"{result.subject}: accesses were not watched (silent mode).",)))
        return blocks
    if seen.padded_writes:
        words = (
            f"{result.subject}: padded rows wrote {seen.padded_writes:,} times to "
            f"{', '.join(seen.padded_targets)} while a request owned it."
        )
        blocks.append(Prose(in_words(words), Tone.BAD))
    if seen.non_finite_padding:
        words = f"{result.subject}: non-finite values in the padding row of "
        blocks.append(Prose(in_words(words + ", ".join(seen.non_finite_padding) + "."), Tone.BAD))
    if seen.buffers:
        blocks.append(_access_table(seen, result.subject))
    elif result.ended not in ("measured", "partial"):
        words = f"{result.subject}: no access outside a buffer was recorded before it ended"
        blocks.append(Prose(in_words(f"{words} ({result.ended}: {result.detail}).")))
    elif not seen.padded_writes:
        blocks.append(Prose((f"{result.subject}: every access was within its buffer.",)))
    return blocks


def _access_table(seen: OutOfRange, subject: str) -> Table:
    def row(one: ShortIndex) -> tuple[Cell, ...]:
        return (
            Cell(f"{one.buffer}[{one.index}]", sort=f"{one.buffer}{one.index:09d}", code=True),
            Cell(f"{one.rows:,}", sort=one.rows),
            Cell(f"{one.reads:,}", sort=one.reads),
            Cell(f"{one.writes:,}", sort=one.writes),
            Cell(f"{one.first_step:,}", sort=one.first_step),
            Cell(", ".join(one.hit), code=True),
        )

    return Table(
        f"Out-of-range accesses of {subject}, by index",
        (
            Column("accessed"),
            Column("rows", numeric=True),
            Column("reads", numeric=True),
            Column("writes", numeric=True),
            Column("first step", numeric=True),
            Column("whose bytes"),
        ),
        tuple(row(one) for one in seen.buffers),
        filtered=len(seen.buffers) > 8,
        folded=len(seen.buffers) > 8,
    )
