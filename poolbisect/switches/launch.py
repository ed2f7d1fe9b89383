"""One launch of the subject with some switches on, and what can launch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import msgspec

from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended


class Role(StrEnum):
    """Whose code is launched: the subject's, or that of the state it is compared with."""

    SUBJECT = "subject"
    REFERENCE = "reference"


class LaunchRequest(msgspec.Struct, frozen=True):
    """Launch with the switches `on` (sorted names) on and all others off.

    `concurrency` overrides what the switches say of it: requests the client keeps in flight.
    """

    on: tuple[str, ...]
    role: Role = Role.SUBJECT
    concurrency: int | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What one launch showed. Only `measured` carries a whole score.

    `outcomes`: one character a question, "1" right, "0" wrong, "-" not answered, the same
    questions in the same order at every launch; None where questions cannot be told apart.
    `verdict`: the oracle's own, for symptoms that are judged without a comparison. `reads` and
    `writes`: out-of-range accesses, None where nobody looked. `requests_on_last_slot`: how many
    requests held the largest request slot there is. `seconds`: wall-clock time.
    """

    request: LaunchRequest
    ended: Ended
    detail: str = ""
    correct: int = 0
    asked: int = 0
    outcomes: str | None = None
    verdict: Verdict | None = None
    accept_length: float | None = None
    reads: int | None = None
    writes: int | None = None
    overwritten: int | None = None
    last_slot: int | None = None
    last_slot_used: bool | None = None
    requests_on_last_slot: int | None = None
    seconds: float = 0.0
    log: str | None = None

    @property
    def accuracy(self) -> float | None:
        """Right answers among answered questions, None without any or without a whole score."""
        return self.correct / self.asked if self.asked and self.ended is Ended.MEASURED else None


@dataclass(frozen=True, slots=True)
class Traits:
    """What the search must know of an oracle.

    `reference`: it can launch the reference as well. `concurrency`: requests in flight at most
    where it can vary them, else None.
    """

    name: str
    reference: str | None = None
    concurrency: int | None = None


Watch = Callable[[str], None]
"""Called with a few words on how far a launch is, for a live display."""


class LaunchOracle(Protocol):
    """Launches one subject in any configuration. Opened for a search, closed after it."""

    traits: Traits

    def launch(self, request: LaunchRequest, watch: Watch) -> Launch:
        """Launch and measure.

        What the configuration cannot do (refused flags), what the subject does wrong and what the
        host does wrong are endings of the launch (`not_applicable`, `crashed`, `infra` ...), never
        exceptions. KeyboardInterrupt passes through once everything started is ended.
        """

    def close(self) -> None:
        """End what is kept between launches."""
