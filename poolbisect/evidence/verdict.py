"""From a comparison to a verdict: a drop, no drop of interest, or too few questions to say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from poolbisect.evidence.mcnemar_power import detectable_drop_over_flips, questions_over_flips
from poolbisect.evidence.paired import PairedComparison
from poolbisect.evidence.power import (
    ALPHA,
    POWER,
    detectable_drop_unpaired,
    questions_unpaired,
)
from poolbisect.evidence.unpaired import UnpairedComparison


class Verdict(StrEnum):
    """What the evidence says of a subject."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    UNTESTABLE = "untestable"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on.

    `detectable` is the smallest drop (fraction of one) that this run would have shown, None if
    none; `questions_needed` is set for `unknown` where some number of questions would decide.
    """

    verdict: Verdict
    reason: str
    p_value: float
    difference: float
    significant: bool
    detectable: float | None
    questions_needed: int | None = None


def judge(
    comparison: PairedComparison | UnpairedComparison,
    *,
    smallest_drop_of_interest: float,
    alpha: float = ALPHA,
    minimum_effect: float = 0.0,
    power: float = POWER,
    flips: float | None = None,
) -> Judgement:
    """Judge the second run of a comparison against the first.

    * `bad`: the drop is significant at `alpha` (two-sided) and at least `minimum_effect` large.
    * `good`: not so, and a drop of `smallest_drop_of_interest` would have shown with probability
      `power`; or accuracy rose significantly.
    * `unknown`: not so, and it would not have shown; `questions_needed` says how many would do.

    `flips` is the share of questions that flip between two runs of one subject; without it the
    discordant share of this comparison stands in. All effects are fractions of one.
    """
    if not 0 < smallest_drop_of_interest <= 1:
        raise ValueError(
            f"the drop of interest must lie in (0, 1], got {smallest_drop_of_interest}"
        )
    if not 0 <= minimum_effect <= 1:
        raise ValueError(f"the minimum effect must lie in [0, 1], got {minimum_effect}")
    p_value, difference = comparison.p_value, comparison.difference
    significant = p_value < alpha
    detectable = _detectable(comparison, alpha, power, flips)

    def judgement(verdict: Verdict, reason: str, questions: int | None = None) -> Judgement:
        return Judgement(verdict, reason, p_value, difference, significant, detectable, questions)

    points = f"{abs(difference) * 100:.1f} points"
    if significant and difference < 0 and -difference >= minimum_effect - 1e-12:
        return judgement(Verdict.BAD, f"accuracy fell by {points} (p = {p_value:.2g})")
    if significant and difference > 0:
        return judgement(Verdict.GOOD, f"accuracy rose by {points} (p = {p_value:.2g})")
    if detectable is not None and detectable <= smallest_drop_of_interest:
        if significant and difference < 0:
            return judgement(
                Verdict.GOOD,
                f"accuracy fell by {points} (p = {p_value:.2g}), less than the "
                f"{minimum_effect * 100:.1f} points that count",
            )
        return judgement(
            Verdict.GOOD,
            f"no significant change (p = {p_value:.2g}); a drop of {detectable * 100:.1f} points "
            "would have shown",
        )
    needed = _questions_needed(comparison, smallest_drop_of_interest, alpha, power, flips)
    smallest = "none" if detectable is None else f"{detectable * 100:.1f} points"
    advice = "" if needed is None else f"; about {needed} questions would do"
    return judgement(
        Verdict.UNKNOWN,
        f"too few questions for a drop of {smallest_drop_of_interest * 100:.1f} points "
        f"(smallest detectable: {smallest}){advice}",
        needed,
    )


def _detectable(
    comparison: PairedComparison | UnpairedComparison,
    alpha: float,
    power: float,
    flips: float | None,
) -> float | None:
    """The smallest drop that the comparison would have shown, None if none."""
    if isinstance(comparison, PairedComparison):
        if comparison.n == 0:
            return None
        share = comparison.discordant_share if flips is None else flips
        return detectable_drop_over_flips(
            comparison.n, share, power, alpha, largest=comparison.before
        )
    # The smaller run limits what the pair can show.
    asked = min(comparison.before_asked, comparison.after_asked)
    return detectable_drop_unpaired(asked, comparison.before, power, alpha) if asked else None


def _questions_needed(
    comparison: PairedComparison | UnpairedComparison,
    drop: float,
    alpha: float,
    power: float,
    flips: float | None,
) -> int | None:
    """The questions at which `drop` would show; None if accuracy has less than that to lose."""
    before = comparison.before
    # Also false for NaN, the accuracy without any question.
    if not drop <= before:
        return None
    if isinstance(comparison, UnpairedComparison):
        return questions_unpaired(before, before - drop, power, alpha)
    share = comparison.discordant_share if flips is None else flips
    return questions_over_flips(drop, share, power, alpha) if share + drop <= 1 else None
