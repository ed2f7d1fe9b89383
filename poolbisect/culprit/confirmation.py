"""Before blame: the commit before, the commit itself, and the newer end without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from poolbisect.bisection.outcome import Ending, Find, Observation, Verdict
from poolbisect.culprit.interface import Attempt, HistoryProbe, Probed, Watch
from poolbisect.culprit.outcome import Confirmation, Confirmed, Seen
from poolbisect.culprit.steps import Step
from poolbisect.errors import InfrastructureError
from poolbisect.evidence.paired import compare_paired
from poolbisect.evidence.unpaired import UnpairedComparison
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.reverted import revert
from poolbisect.history.source_tree import SourceTree

_ALPHA = 0.01


NewAttempt = Callable[[str], Attempt]
"""Makes an attempt with a folder of its own, given a label for it."""


@runtime_checkable
class TreeProbe(Protocol):
    """A probe that can measure any state of the sources, not only positions."""

    def probe_tree(self, tree: SourceTree) -> Probed: ...


@runtime_checkable
class WithoutProbe(Protocol):
    """A probe that can take a commit back by itself, from the newer end."""

    def probe_without(self, position: int, attempt: Attempt, watch: Watch) -> Probed | str:
        """Measure the newer end without what `position` did, or say why not."""


def confirm(
    history: HistoryRange,
    probe: HistoryProbe,
    steps: Sequence[Step],
    culprit: int,
    find: Find,
    new_attempt: NewAttempt,
    watch: Watch,
) -> Confirmation:
    """The measurements of the search at the culprit and before it, and a revert measured now."""
    old, new = (Seen.GOOD, Seen.BAD) if find is Find.INTRODUCED else (Seen.BAD, Seen.GOOD)
    return Confirmation(
        _measured(history, steps, culprit - 1, old),
        _measured(history, steps, culprit, new),
        _revert(history, probe, steps, culprit, (old, new), new_attempt, watch),
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
    new_attempt: NewAttempt,
    watch: Watch,
) -> Confirmed:
    newest = len(history) - 1
    if not isinstance(history, CommitRange):
        return Confirmed(Seen.NOT_TRIED, "a release cannot be taken back on its own")
    if culprit == newest:
        return Confirmed(Seen.NOT_TRIED, "it is the newer end: without it there is the one before")
    newer, blamed = history.commits[newest], history.commits[culprit]
    name = f"{newer.short} without {blamed.short}"
    try:
        if isinstance(probe, TreeProbe):
            tree = revert(history.repository, newer, blamed)
            found = tree if isinstance(tree, str) else probe.probe_tree(tree)
        elif isinstance(probe, WithoutProbe):
            attempt = new_attempt(f"{newer.short}-without-{blamed.short}")
            found = probe.probe_without(culprit, attempt, watch)
        else:
            found = f"the {probe.name} probe measures commits only"
    except InfrastructureError as error:
        return Confirmed(Seen.UNTESTABLE, str(error))
    if isinstance(found, str):
        return Confirmed(Seen.NOT_TRIED, found)
    observation = found.observation
    seen = _side(observation, history, steps, sides)
    return Confirmed(seen, f"{name}: {observation.note or _summary([observation])}")


def _side(
    observation: Observation,
    history: HistoryRange,
    steps: Sequence[Step],
    sides: tuple[Seen, Seen],
) -> Seen:
    """Which end a measurement is like."""
    if observation.verdict is not None:
        return Seen.GOOD if observation.verdict is Verdict.GOOD else Seen.BAD
    if observation.ending is not Ending.MEASURED or not observation.asked:
        return Seen.UNTESTABLE
    unlike_old, unlike_new = (
        _differs(observation, steps, position) for position in (0, len(history) - 1)
    )
    if unlike_new and not unlike_old:
        return sides[0]
    if unlike_old and not unlike_new:
        return sides[1]
    return Seen.UNKNOWN


def _differs(observation: Observation, steps: Sequence[Step], position: int) -> bool:
    """Whether a score is significantly another one than that of a position."""
    if observation.outcomes is not None:
        compared = compare_paired(_answers(steps, position), _numbered(observation))
        return compared.p_value < _ALPHA
    seen = [step.observation for step in steps if step.position == position]
    correct, asked = sum(one.correct for one in seen), sum(one.asked for one in seen)
    compared_rates = UnpairedComparison(correct, asked, observation.correct, observation.asked)
    return compared_rates.p_value < _ALPHA


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
