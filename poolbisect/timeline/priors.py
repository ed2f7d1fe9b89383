"""What a timeline says beforehand about where a bisect will end."""

from __future__ import annotations

from collections.abc import Iterable

from poolbisect.timeline.transitions import Kind
from poolbisect.timeline.workflow import Timeline

# Shares of the prior: a breach of the contract is what these faults come from, but the timeline
# sees only the buffers it knows. Whatever it does not see keeps a share.
_BREACH, _OTHER_CHANGE, _TOUCHED, _ANY = 0.70, 0.12, 0.08, 0.10


def prior_from_timeline(timeline: Timeline, *, find: str = "introduced") -> tuple[float, ...]:
    """Weights, one a position, of being the commit that is looked for; they sum to 1.

    Most goes to the transitions of the kind looked for, `introduced` or `fixed`; some to every
    other transition, to commits that touch sources the probe reads, and a little to every commit.
    Position 0, the older end, has none. Where the timeline found no transition of a sort, its
    share goes to all commits.
    """
    wanted = {Kind.FIXED} if find == "fixed" else {Kind.INTRODUCED, Kind.REINTRODUCED}
    breaches = {one.position for one in timeline.transitions if one.kind in wanted}
    others = {one.position for one in timeline.transitions} - breaches
    every = range(1, len(timeline.history))
    weights = [0.0] * len(timeline.history)
    for share, positions in (
        (_BREACH, breaches),
        (_OTHER_CHANGE, others),
        (_TOUCHED, timeline.touched),
        (_ANY, every),
    ):
        _spread(weights, share, positions or every)
    return tuple(weights)


def _spread(weights: list[float], share: float, positions: Iterable[int]) -> None:
    chosen = tuple(positions)
    for position in chosen:
        weights[position] += share / len(chosen)
