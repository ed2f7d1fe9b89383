"""Beside the commit: which buffer is at fault, written by whom, and what the commit's files say."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.bisection.outcome import Find
from poolbisect.culprit.contract import faults
from poolbisect.culprit.request import BisectRequest
from poolbisect.errors import InfrastructureError, NotApplicableError
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.remarks import remark
from poolbisect.probes.facets import ContractState, PoolKind, PoolPlan
from poolbisect.probes.sandbox import Sandbox
from poolbisect.timeline import Attribution, Timeline, attribution_at, every_plan, plans_for

_PACKAGE = "sglang/srt/mem_cache/memory_pool.py"
"""Without this file a history is not SGLang's, and has no pools to blame."""

_MOST_WHEELS = 6
"""Releases that are fetched to say since which one a buffer is as it is."""


@dataclass(frozen=True, slots=True)
class Blame:
    """`attribution`: None where no buffer is at fault on one side of the culprit only."""

    attribution: Attribution | None
    remark: str


def explain(
    request: BisectRequest, history: HistoryRange, culprit: int, seen: Timeline | None
) -> Blame:
    """What the contract says of the culprit, and what its files do."""
    words = ""
    if isinstance(history, CommitRange):
        words = remark(history.repository, history.commits[culprit])
    plans = every_plan() if request.scenario is None else plans_for(request.scenario)
    try:
        return Blame(_attribution(history, culprit, request.find, plans, seen), words)
    except (InfrastructureError, NotApplicableError):
        return Blame(None, words)


def _attribution(
    history: HistoryRange,
    culprit: int,
    find: Find,
    plans: tuple[PoolPlan, ...],
    seen: Timeline | None,
) -> Attribution | None:
    """The buffer that is at fault on the bad side of the culprit and not on the good one."""
    bad = culprit if find is Find.INTRODUCED else culprit - 1
    good = culprit - 1 if find is Find.INTRODUCED else culprit
    states = _states(history, (bad, good), plans, seen)
    if states is None:
        return None
    changed = faults(states[bad]) - faults(states[good])
    if not changed:
        return None
    only = [(PoolKind(kind), buffer) for kind, buffer in changed]
    earlier: tuple[ContractState, ...] = seen.states[:bad] if seen is not None else ()
    if seen is None and not isinstance(history, CommitRange) and bad <= _MOST_WHEELS:
        with Sandbox() as sandbox:
            earlier = tuple(sandbox.probe(history.tree(p), plans) for p in range(bad))
    found = attribution_at(history, bad, states[bad], only=only, earlier=earlier)
    return found[0] if found else None


def _states(
    history: HistoryRange,
    positions: tuple[int, int],
    plans: tuple[PoolPlan, ...],
    seen: Timeline | None,
) -> dict[int, ContractState] | None:
    if seen is not None:
        return {position: seen.states[position] for position in positions}
    trees = {position: history.tree(position) for position in positions}
    if all(tree.read(_PACKAGE) is None for tree in trees.values()):
        return None
    with Sandbox() as sandbox:
        return {position: sandbox.probe(tree, plans) for position, tree in trees.items()}
