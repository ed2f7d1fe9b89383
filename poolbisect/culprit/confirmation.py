"""Before blame: the commit before, the commit itself, and the newer end without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from poolbisect.bisection.outcome import Ending, Find, Observation, Verdict
from poolbisect.culprit.interface import HistoryProbe, Probed
from poolbisect.culprit.outcome import Confirmation, Confirmed, Seen
from poolbisect.culprit.steps import Step
from poolbisect.errors import InfrastructureError
from poolbisect.evidence.paired import compare_paired
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.reverted import revert
from poolbisect.history.source_tree import SourceTree

_ALPHA = 0.01


class TreeProbe(Protocol):
    """A probe that can measure any state of the sources, not only positions."""

    def probe_tree(self, tree: SourceTree) -> Probed: ...


def confirm(
    history: HistoryRange, probe: HistoryProbe, steps: Sequence[Step], culprit: int, find: Find
) -> Confirmation:
    """The measurements of the search at the culprit and before it, and a revert measured now."""
    old, new = (Seen.GOOD, Seen.BAD) if find is Find.INTRODUCED else (Seen.BAD, Seen.GOOD)
    return Confirmation(
        _measured(history, steps, culprit - 1, old),
        _measured(history, steps, culprit, new),
        _revert(history, probe, steps, culprit, (old, new)),
    )


def _measured(history: HistoryRange, steps: Sequence[Step], position: int, side: Seen) -> Confirmed:
    """What the search saw at a position that it put on a side."""
    here = [step for step in steps if step.position == position]
    judged = [step.observation for step in here if _judges(step.observation)]
    name = history.entries[position].short
    if not judged:
        return Confirmed(Seen.UNTESTABLE, f"{name} was not measured")
    numbers = ", ".join(str(step.number) for step in here if _judges(step.observation))
    return Confirmed(side, f"{name}: {_summary(judged)} (step {numbers})")


def _judges(seen: Observation) -> bool:
    return seen.ending in (Ending.MEASURED, Ending.CRASHED)


def _summary(seen: Sequence[Observation]) -> str:
    asked = sum(one.asked for one in seen)
    if asked and seen[0].verdict is None:
        correct = sum(one.correct for one in seen)
        return f"{correct} of {asked} right ({correct / asked:.3f})"
    return next((one.note for one in seen if one.note), str(seen[0].verdict or seen[0].ending))


def _revert(
    history: HistoryRange,
    probe: HistoryProbe,
    steps: Sequence[Step],
    culprit: int,
    sides: tuple[Seen, Seen],
) -> Confirmed:
    newest = len(history) - 1
    if not isinstance(history, CommitRange):
        return Confirmed(Seen.NOT_TRIED, "a release cannot be taken back on its own")
    if culprit == newest:
        return Confirmed(Seen.NOT_TRIED, "it is the newer end: without it there is the one before")
    measure = getattr(probe, "probe_tree", None)
    if measure is None:
        return Confirmed(Seen.NOT_TRIED, f"the {probe.name} probe measures commits only")
    tree = revert(history.repository, history.commits[newest], history.commits[culprit])
    if isinstance(tree, str):
        return Confirmed(Seen.NOT_TRIED, tree)
    try:
        observation = measure(tree).observation
    except InfrastructureError as error:
        return Confirmed(Seen.UNTESTABLE, str(error))
    seen = _side(observation, history, steps, sides)
    detail = observation.note or _summary([observation])
    return Confirmed(seen, f"{tree.name}: {detail}")


def _side(
    observation: Observation,
    history: HistoryRange,
    steps: Sequence[Step],
    sides: tuple[Seen, Seen],
) -> Seen:
    """Which end a measurement is like."""
    if observation.verdict is not None:
        return Seen.GOOD if observation.verdict is Verdict.GOOD else Seen.BAD
    if observation.ending is not Ending.MEASURED or observation.outcomes is None:
        return Seen.UNTESTABLE
    ends = []
    for position in (0, len(history) - 1):
        answers = _answers(steps, position)
        ours = _numbered(observation)
        compared = compare_paired(answers, ours)
        ends.append(compared.p_value < _ALPHA)
    unlike_old, unlike_new = ends
    if unlike_new and not unlike_old:
        return sides[0]
    if unlike_old and not unlike_new:
        return sides[1]
    return Seen.UNKNOWN


def _answers(steps: Sequence[Step], position: int) -> dict[int, bool]:
    """Question number to right, the first answers of a position."""
    found: dict[int, bool] = {}
    for step in steps:
        if step.position == position and step.observation.outcomes is not None:
            found = _numbered(step.observation) | found
    return found


def _numbered(seen: Observation) -> dict[int, bool]:
    return {
        number: outcome == "1"
        for number, outcome in enumerate(seen.outcomes or "", start=seen.offset)
        if outcome != "-"
    }
