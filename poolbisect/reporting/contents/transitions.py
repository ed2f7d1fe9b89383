"""Transitions of the pools' contract, as the timeline finds them."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.reporting import numbers
from poolbisect.reporting.documents.bisect import Transition
from poolbisect.reporting.model import Cell, Column, Table, Tone

_TONES = {"introduced": Tone.BAD, "re-introduced": Tone.BAD, "fixed": Tone.GOOD}
_SHORT = 12


def transition_table(transitions: Sequence[Transition], history: str) -> Table:
    """Oldest first, as given."""

    def row(one: Transition) -> tuple[Cell, ...]:
        name = one.name[:_SHORT] if one.commit else one.name
        return (
            Cell(name, code=True),
            Cell(numbers.day(one.date)),
            Cell(one.kind, tone=_TONES.get(one.kind, Tone.PLAIN)),
            Cell(one.text),
            Cell(", ".join(one.pools)),
            Cell(one.title, code=True),
        )

    return Table(
        "Every change of the contract, oldest first",
        (
            Column(history),
            Column("date"),
            Column("kind"),
            Column("what changed"),
            Column("pools"),
            Column("title"),
        ),
        tuple(row(one) for one in transitions),
        filtered=len(transitions) > 8,
    )
