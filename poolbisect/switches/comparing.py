"""The verdict of launches against those with all switches off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from poolbisect.evidence.paired import PairedComparison, compare_paired
from poolbisect.evidence.unpaired import UnpairedComparison, compare_unpaired
from poolbisect.evidence.verdict import Verdict, judge
from poolbisect.measurement import Ended
from poolbisect.switches.launch import Launch
from poolbisect.switches.plan import Plan


@dataclass(frozen=True, slots=True)
class Opinion:
    """A verdict, why, and the comparison it rests on if there is one."""

    verdict: Verdict
    reason: str
    comparison: PairedComparison | UnpairedComparison | None = None


def unlike_a_score(launch: Launch) -> Opinion | None:
    """The opinion of a launch that needs no comparison; None if its score has to be compared."""
    if launch.verdict is not None:
        return Opinion(launch.verdict, launch.detail or launch.verdict.value)
    if launch.ended is not Ended.MEASURED:
        words = launch.ended.value.replace("_", " ")
        return Opinion(Verdict.UNTESTABLE, launch.detail or words)
    if not launch.asked:
        return Opinion(Verdict.UNTESTABLE, "no question was answered")
    return None


Contrast = Callable[[], Sequence[Launch]]
"""Gives as many launches with everything on as are compared, made if need be."""


def compared(
    standard: Sequence[Launch],
    launches: Sequence[Launch],
    plan: Plan,
    contrast: Contrast | None = None,
) -> Opinion:
    """Judge scores against those of the standard, question by question where both have outcomes.

    Launch n is paired with launch n of the standard; cells of one question at several launches
    are independent under the hypothesis that nothing differs, so McNemar's test stays exact.

    Where too few questions were asked to rule a small drop out, a score is good that did not fall
    significantly, lies nearer to the standard than to everything on, and significantly above that.
    """
    comparison = _comparison(standard, launches)
    judged = judge(comparison, smallest_drop_of_interest=plan.smallest_drop, alpha=plan.alpha)
    verdict, reason = judged.verdict, judged.reason
    if isinstance(comparison, PairedComparison) and (comparison.lost or comparison.gained):
        reason = f"{reason}; {comparison.lost} lost, {comparison.gained} gained"
    if verdict is Verdict.UNKNOWN and not judged.significant and contrast is not None:
        above = _above(contrast(), launches, plan)
        if above is not None and abs(comparison.difference) < above.difference:
            verdict = Verdict.GOOD
            reason = (
                f"no significant change (p = {comparison.p_value:.2g}), and "
                f"{above.difference * 100:.1f} points above everything on "
                f"(p = {above.p_value:.2g})"
            )
    if verdict is Verdict.GOOD and any(launch.last_slot_used is False for launch in launches):
        verdict = Verdict.UNKNOWN
        reason = f"{reason}, but the last request slot was not used on every rank"
    return Opinion(verdict, reason, comparison)


def _above(
    contrast: Sequence[Launch], launches: Sequence[Launch], plan: Plan
) -> PairedComparison | UnpairedComparison | None:
    """The comparison with everything on if scores lie significantly above that, else None."""
    if any(unlike_a_score(launch) is not None for launch in contrast):
        return None
    comparison = _comparison(contrast, launches)
    significant = comparison.p_value < plan.alpha and comparison.difference > 0
    return comparison if significant else None


def _comparison(
    standard: Sequence[Launch], launches: Sequence[Launch]
) -> PairedComparison | UnpairedComparison:
    pairs = list(zip(standard, launches, strict=False))
    if all(one.outcomes is not None and other.outcomes is not None for one, other in pairs):
        before, after = (_cells([pair[side] for pair in pairs]) for side in (0, 1))
        return compare_paired(before, after)
    return compare_unpaired(
        sum(one.correct for one, _ in pairs),
        sum(one.asked for one, _ in pairs),
        sum(other.correct for _, other in pairs),
        sum(other.asked for _, other in pairs),
    )


def _cells(launches: Sequence[Launch]) -> dict[tuple[int, int], bool]:
    """Launch and question number to answered rightly, of the answered questions."""
    return {
        (launch_number, number): character == "1"
        for launch_number, launch in enumerate(launches)
        for number, character in enumerate(launch.outcomes or "")
        if character != "-"
    }
