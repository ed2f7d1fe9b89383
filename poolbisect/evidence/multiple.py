"""Several scenarios judged together, so that asking more questions does not raise more alarms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from poolbisect.evidence.power import ALPHA
from poolbisect.evidence.verdict import Judgement, Verdict


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjusted p-values (Holm 1979, Scand J Stat 6:65), keys kept in order.

    Rejecting every hypothesis whose adjusted p is below alpha keeps the chance of any false
    rejection at most alpha, whatever the dependence between the tests.
    """
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise ValueError(f"p-value of {name} must lie between 0 and 1, got {p}")
    adjusted: dict[str, float] = {}
    floor = 0.0
    ordered = sorted(p_values, key=lambda name: p_values[name])
    for rank, name in enumerate(ordered):
        floor = max(floor, min(1.0, (len(ordered) - rank) * p_values[name]))
        adjusted[name] = floor
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True, slots=True)
class JointJudgement:
    """One verdict over several scenarios, with each scenario's own after Holm's correction."""

    verdict: Verdict
    scenarios: Mapping[str, Judgement]
    adjusted: Mapping[str, float]


def judge_jointly(judgements: Mapping[str, Judgement], alpha: float = ALPHA) -> JointJudgement:
    """Judge a subject over several scenarios at a family-wise level `alpha` (Holm).

    A scenario stays `bad` only if its adjusted p is below `alpha`, else it becomes `unknown`.
    Any bad scenario makes the whole bad; else any that is not good makes it unknown, or
    untestable if all of them are. Raises ValueError without any scenario.
    """
    if not judgements:
        raise ValueError("no scenario to judge")
    adjusted = holm({name: judgement.p_value for name, judgement in judgements.items()})
    scenarios = {
        name: _corrected(judgement, adjusted[name], len(judgements), alpha)
        for name, judgement in judgements.items()
    }
    verdicts = {judgement.verdict for judgement in scenarios.values()}
    if Verdict.BAD in verdicts:
        whole = Verdict.BAD
    elif len(verdicts) == 1:
        whole = verdicts.pop()
    else:
        whole = Verdict.UNKNOWN
    return JointJudgement(whole, scenarios, adjusted)


def _corrected(judgement: Judgement, adjusted: float, tests: int, alpha: float) -> Judgement:
    if judgement.verdict is not Verdict.BAD or adjusted < alpha:
        return judgement
    reason = (
        f"{judgement.reason}, not significant among {tests} scenarios (Holm p = {adjusted:.2g})"
    )
    return replace(judgement, verdict=Verdict.UNKNOWN, reason=reason, significant=False)
