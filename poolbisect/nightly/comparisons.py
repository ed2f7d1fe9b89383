"""The comparisons of a series tonight that have a p-value, each judged alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolbisect.evidence.baseline import judge_score
from poolbisect.evidence.paired import PairedComparison, compare_paired
from poolbisect.evidence.paired_lengths import compare_lengths
from poolbisect.evidence.unpaired import compare_unpaired
from poolbisect.evidence.verdict import Judgement, Verdict, judge
from poolbisect.measurement import Measurement
from poolbisect.nightly.past import night_name, open_finding
from poolbisect.nightly.series import LastGood, Tonight
from poolbisect.scenario import Symptom

BASELINE, NIGHT, REFERENCE = "its baseline", "the last good night", "the reference"
MOST_TELLING = (NIGHT, REFERENCE, BASELINE)
"""The last good night says most: since when, and which questions; a baseline says least."""


@dataclass(frozen=True, slots=True)
class Rules:
    """`alpha`: chance of any false alarm in the night; `minimum_drop`: a smaller one is never bad
    (share of one)."""

    alpha: float = 0.001
    minimum_drop: float = 0.01


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison that can make a series bad.

    `paired` are its counts where questions were matched; `loss` the drop in accuracy (share of
    one, negative for a rise), None where it is about something else.
    """

    against: str
    judgement: Judgement
    paired: PairedComparison | None = None
    loss: float | None = None

    @property
    def rank(self) -> int:
        """Its place among the most telling ones."""
        return next(n for n, kind in enumerate(MOST_TELLING) if self.against.startswith(kind))


def comparisons_of(tonight: Tonight, rules: Rules) -> list[Comparison]:
    """The comparisons with a p-value: with the reference, the baseline, the last good night."""
    if not tonight.measured:
        return []
    interest = drop_of_interest(tonight)
    found: list[Comparison] = []
    symptom = tonight.scenario.symptom
    about_accuracy = symptom is Symptom.ACCURACY
    if about_accuracy and tonight.reference is not None:
        paired = tonight.verdict.comparison
        if paired is not None:
            against = f"{REFERENCE} {tonight.reference.subject}"
            found.append(_paired(against, paired, interest, rules))
    if tonight.baseline is not None and (about_accuracy or tonight.reference is None):
        found.append(_against_baseline(tonight, interest, rules))
    good = tonight.last_good
    if good is not None:
        against = f"{NIGHT} {night_name(good.night.started)}"
        if about_accuracy:
            found += _against_night(tonight, good, against, interest, rules)
        elif symptom is Symptom.ACCEPT_LENGTH:
            found += _lengths(tonight.measurement, good.accept_lengths, against, rules)
    if symptom is Symptom.ACCEPT_LENGTH and tonight.reference is not None:
        reference = {str(q): v for q, v in tonight.reference.accept_lengths().items()}
        against = f"{REFERENCE} {tonight.reference.subject}"
        found += _lengths(tonight.measurement, reference, against, rules)
    return found


def drop_of_interest(tonight: Tonight) -> float:
    """The drop that a good night must have been able to show.

    The scenario's own; but to close a finding it is enough that a drop as large as the one found
    would have shown.
    """
    smallest = tonight.scenario.judging.smallest_drop
    found = open_finding(tonight.past)
    return smallest if found is None or found.loss is None else max(smallest, found.loss)


def _paired(against: str, paired: PairedComparison, interest: float, rules: Rules) -> Comparison:
    judgement = judge(
        paired,
        smallest_drop_of_interest=interest,
        alpha=rules.alpha,
        minimum_effect=rules.minimum_drop,
    )
    return Comparison(against, judgement, paired, -paired.difference)


def _against_baseline(tonight: Tonight, interest: float, rules: Rules) -> Comparison:
    baseline, measurement = tonight.baseline, tonight.measurement
    assert baseline is not None
    score = judge_score(
        measurement.accuracy or 0.0,
        baseline.recorded,
        smallest_drop_of_interest=interest,
        alpha=rules.alpha,
        minimum_effect=rules.minimum_drop,
    )
    bad = score.verdict is Verdict.BAD
    relation = f"{-score.difference * 100:.1f} points below" if bad else "in line with"
    judgement = Judgement(
        score.verdict,
        f"accuracy is {relation} its baseline {baseline.mean:.3f} ± {baseline.spread:.4f} "
        f"({baseline.spread_kind}, p = {score.p_value:.2g})",
        score.p_value,
        score.difference,
        score.significant,
        score.detectable,
    )
    return Comparison(BASELINE, judgement, None, -score.difference)


def _against_night(
    tonight: Tonight, good: LastGood, against: str, interest: float, rules: Rules
) -> list[Comparison]:
    measurement, night = tonight.measurement, good.night
    now = {str(question): right for question, right in measurement.outcomes().items()}
    if good.outcomes:
        return [_paired(against, compare_paired(good.outcomes, now), interest, rules)]
    if not night.answered or night.correct is None or not measurement.answered:
        return []
    unpaired = compare_unpaired(
        night.correct, night.answered, measurement.correct, measurement.answered
    )
    judgement = judge(
        unpaired,
        smallest_drop_of_interest=interest,
        alpha=rules.alpha,
        minimum_effect=rules.minimum_drop,
    )
    return [Comparison(f"{against} (unpaired)", judgement, None, -unpaired.difference)]


def _lengths(
    measurement: Measurement, before: Mapping[str, float], against: str, rules: Rules
) -> list[Comparison]:
    """Accept lengths, paired by question; a fall has no smallest size."""
    if not before:
        return []
    now = {str(question): length for question, length in measurement.accept_lengths().items()}
    compared = compare_lengths(before, now)
    significant = compared.p_value < rules.alpha
    fell = compared.differing > 0 and compared.after < compared.before
    verdict = Verdict.GOOD
    if fell and significant:
        verdict = Verdict.BAD
    elif fell and 2.0 ** (1 - compared.differing) >= rules.alpha:
        verdict = Verdict.UNKNOWN  # so few signs cannot be significant (Wilcoxon 1945)
    reason = "no question's accept length differs"
    if compared.differing:
        reason = (
            f"the accept length of {compared.fell} questions fell and of {compared.rose} rose "
            f"(mean of those {compared.before:.2f} before, {compared.after:.2f} after, "
            f"p = {compared.p_value:.2g})"
        )
    change = compared.after - compared.before if compared.differing else 0.0
    judgement = Judgement(verdict, reason, compared.p_value, change, significant, None)
    return [Comparison(against, judgement)]
