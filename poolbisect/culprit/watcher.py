"""What a display of a bisect is told."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.bisection.plan import Plan
from poolbisect.culprit.steps import Step
from poolbisect.history.ranges import HistoryRange
from poolbisect.timeline import Timeline
from poolbisect.timeline.probers import Watch as TimelineWatch


class Watcher:
    """Shows nothing; a display overrides what it shows."""

    def planned(self, history: HistoryRange, plan: Plan, resumed: Sequence[Step]) -> None: ...

    def surveyed(self, found: Timeline) -> None: ...

    def probing(self, position: int, questions: int, reason: str) -> None: ...

    def says(self, words: str) -> None: ...

    def step(self, step: Step) -> None: ...

    def confirming(self, culprit: int) -> None: ...

    def survey(self) -> TimelineWatch | None:
        """Where the timeline reports its progress."""
        return None
