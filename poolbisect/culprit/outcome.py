"""What a bisect ends with, for every report alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from poolbisect.bisection.outcome import Find, Kind, Result
from poolbisect.bisection.plan import Plan
from poolbisect.culprit.request import BisectRequest
from poolbisect.culprit.steps import Step
from poolbisect.history.ranges import HistoryRange
from poolbisect.timeline.attribution import Attribution

INTERRUPTED = "interrupted"


class Seen(StrEnum):
    """What a measurement of the confirmation showed."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    UNTESTABLE = "untestable"
    NOT_TRIED = "not_tried"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """One line of the confirmation: what it showed, and how that is known."""

    seen: Seen
    text: str


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The commit before the culprit, the culprit, and the newer end without the culprit."""

    parent: Confirmed
    culprit: Confirmed
    revert: Confirmed


@dataclass(frozen=True, slots=True)
class Inside:
    """What lies inside a merge that is the culprit: the bisect of its branch, or why there is
    none."""

    outcome: BisectOutcome | None
    text: str


@dataclass(frozen=True, slots=True)
class BisectOutcome:
    """A finished, exhausted or interrupted bisect.

    `result` is None when it was interrupted before an answer, `stopped` when it was after one.
    `weights`: posterior of each position. `evidence`: that of each step, by its number. `remark`:
    what the files of the culprit say of its guilt. `timeline`: as `timeline --json` prints it.
    `started` is that of the first start, `seconds` the time of this one and of earlier probes.
    """

    request: BisectRequest
    history: HistoryRange
    plan: Plan
    result: Result | None
    steps: tuple[Step, ...]
    weights: tuple[float, ...]
    evidence: Mapping[int, Mapping[str, Any]]
    command: tuple[str, ...]
    started: datetime
    seconds: float
    confirmation: Confirmation | None = None
    attribution: Attribution | None = None
    remark: str = ""
    timeline: Mapping[str, Any] | None = None
    stopped: bool = False
    inside: Inside | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return INTERRUPTED if self.interrupted or self.result is None else self.result.kind.value

    @property
    def exit_code(self) -> int:
        return 130 if self.interrupted or self.result is None else self.result.exit_code

    @property
    def interrupted(self) -> bool:
        inner = self.inside.outcome if self.inside is not None else None
        return self.stopped or self.result is None or (inner is not None and inner.interrupted)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer must know beside it."""
        found = [self.request.note] if self.request.note else []
        revert = self.confirmation.revert if self.confirmation is not None else None
        unmended = Seen.BAD if self.request.find is Find.INTRODUCED else Seen.GOOD
        if revert is not None and revert.seen is unmended:
            found.append(
                "taking it back from the newer end changes nothing there: another commit of the "
                "range does the same, so look for a second culprit after this one"
            )
        return tuple(found)

    @property
    def found(self) -> bool:
        return self.result is not None and self.result.kind in (Kind.CULPRIT, Kind.SECOND_STEP)

    @property
    def innermost(self) -> BisectOutcome:
        """The bisect that names the commit: this one, or that of the branch a merge brought in."""
        inner = self.inside.outcome if self.inside is not None else None
        return inner.innermost if inner is not None and inner.found else self
