"""What is known after a list of events: recomputed from the whole list each time, never patched."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from poolbisect.bisection.outcome import Ending, Observation, Spent, Verdict
from poolbisect.bisection.plan import Mode, Plan


@dataclass(frozen=True, slots=True)
class Recorded:
    """A probe ended."""

    position: int
    observation: Observation


@dataclass(frozen=True, slots=True)
class Skipped:
    """Positions first..last (inclusive) are not to be tested, and what they said not counted."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """All earlier events about the position are retracted."""

    position: int


@dataclass(frozen=True, slots=True)
class Suspected:
    """Test this position and its parent first."""

    position: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """A new start: earlier infrastructure failures no longer stop the search."""


Event: TypeAlias = Recorded | Skipped | Forgotten | Suspected | Resumed


@dataclass(frozen=True, slots=True)
class Facts:
    """`measured`: judged observations in order of time. `broken`: cannot be tested, and never
    were. `blocked`: not to be asked again. `recent_infra`: infra endings and all endings since the
    last start. `infra_places`: where the former were."""

    measured: tuple[tuple[int, Observation], ...]
    broken: frozenset[int]
    blocked: frozenset[int]
    suspects: tuple[int, ...]
    spent: Spent
    last_position: int | None
    recent_infra: tuple[int, int]
    infra_places: frozenset[int]

    def at(self, position: int) -> list[Observation]:
        return [seen for where, seen in self.measured if where == position]

    def positions(self) -> list[int]:
        return sorted({where for where, _ in self.measured})


def judge(observation: Observation, plan: Plan) -> Observation | None:
    """The observation in the form the plan's mode counts, or None if it judges nothing."""
    if observation.ending is Ending.CRASHED and plan.crash_is_bad:
        verdict = Verdict.BAD
    elif observation.ending is not Ending.MEASURED:
        return None
    elif observation.verdict is not None:
        verdict = observation.verdict
    elif plan.crash_is_bad:
        verdict = Verdict.GOOD
    elif plan.mode in (Mode.COUNTS, Mode.PAIRED):
        return observation if observation.asked else None
    else:
        return None
    good = int(verdict is Verdict.GOOD)
    return Observation(verdict=verdict, correct=good, asked=1, seconds=observation.seconds)


def facts(events: Sequence[Event], plan: Plan) -> Facts:
    """Replay the events."""
    kept: list[Recorded | Skipped] = []
    suspects: list[int] = []
    probes: list[Recorded] = []
    infra = recent = 0
    places: set[int] = set()
    for event in events:
        match event:
            case Recorded():
                kept.append(event)
                probes.append(event)
                recent += 1
                if event.observation.ending is Ending.INFRA:
                    infra += 1
                    places.add(event.position)
            case Skipped():
                kept.append(event)
            case Forgotten(position):
                kept = [part for old in kept for part in _without(old, position)]
                suspects = [s for s in suspects if s != position]
            case Suspected(position):
                suspects = [s for s in suspects if s != position] + [position]
            case Resumed():
                infra = recent = 0
                places = set()
                kept = [k for k in kept if not _is_infra(k)]
    measured, broken, blocked = _sort(kept, plan)
    return Facts(
        measured,
        broken,
        blocked,
        tuple(suspects),
        _spent(probes),
        probes[-1].position if probes else None,
        (infra, recent),
        frozenset(places),
    )


def _is_infra(event: Recorded | Skipped) -> bool:
    return isinstance(event, Recorded) and event.observation.ending is Ending.INFRA


def _without(event: Recorded | Skipped, position: int) -> Iterable[Recorded | Skipped]:
    if isinstance(event, Recorded):
        return () if event.position == position else (event,)
    parts = (
        Skipped(event.first, min(event.last, position - 1)),
        Skipped(max(event.first, position + 1), event.last),
    )
    return tuple(p for p in dict.fromkeys(parts) if p.first <= p.last)


def _sort(
    kept: Sequence[Recorded | Skipped], plan: Plan
) -> tuple[tuple[tuple[int, Observation], ...], frozenset[int], frozenset[int]]:
    skipped: set[int] = set()
    failed: set[int] = set()
    lost: dict[int, int] = {}
    measured: list[tuple[int, Observation]] = []
    for event in kept:
        if isinstance(event, Skipped):
            skipped |= set(range(event.first, event.last + 1))
            continue
        seen = judge(event.observation, plan)
        if seen is not None:
            measured.append((event.position, seen))
            lost.pop(event.position, None)
        elif event.observation.ending is Ending.INFRA:
            lost[event.position] = lost.get(event.position, 0) + 1
        else:
            failed.add(event.position)
    passed_over = {p for p, times in lost.items() if times > plan.infra_retries}
    measured = [(p, seen) for p, seen in measured if p not in skipped]
    blocked = skipped | failed | passed_over
    return (
        tuple(measured),
        frozenset(blocked - {p for p, _ in measured}),
        frozenset(blocked),
    )


def _spent(probes: Sequence[Recorded]) -> Spent:
    return Spent(
        probes=len(probes),
        questions=sum(max(p.observation.asked, 0) for p in probes),
        switches=sum(a.position != b.position for a, b in itertools.pairwise(probes)),
        seconds=sum(p.observation.seconds for p in probes),
    )
