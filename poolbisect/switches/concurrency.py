"""Score against concurrency: the same configuration with 1, 2, 4 … requests in flight."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.switches.isolation import Names
from poolbisect.switches.referee import Decision, Referee


@dataclass(frozen=True, slots=True)
class ConcurrencyRow:
    """One row: requests in flight, and the decision from one launch with so many."""

    concurrency: int
    decision: Decision


def concurrencies(most: int) -> tuple[int, ...]:
    """Powers of two below `most`, and `most`."""
    values = [1]
    while values[-1] * 2 < most:
        values.append(values[-1] * 2)
    return tuple(dict.fromkeys((*values, most)))


def against_concurrency(on: Names, most: int, referee: Referee) -> tuple[ConcurrencyRow, ...]:
    """Launch the configuration `on` at every concurrency up to `most`, judged against all off."""
    return tuple(
        ConcurrencyRow(value, referee.at_concurrency(on, value)) for value in concurrencies(most)
    )
