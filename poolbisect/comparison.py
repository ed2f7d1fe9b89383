"""The workflow of `compare`: are two scores comparable, can questions be matched, what follows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from poolbisect.evidence.baseline import ScoreJudgement
from poolbisect.evidence.intervals import Interval, wilson
from poolbisect.evidence.outcomes import MAX_LOST_SHARE
from poolbisect.evidence.paired import PairedComparison, compare_paired
from poolbisect.evidence.unpaired import UnpairedComparison, compare_unpaired
from poolbisect.evidence.verdict import Judgement, Verdict, judge
from poolbisect.formats import ScoreFile
from poolbisect.formats.score_file import QuestionId

ALPHA = 0.05
SMALLEST_DROP = 0.02


class CompareVerdict(StrEnum):
    """What a comparison says, and the exit code that goes with it."""

    NO_REGRESSION = "no_regression"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not_comparable"

    @property
    def exit_code(self) -> int:
        return {"no_regression": 0, "regression": 1}.get(self.value, 4)


def compare_verdict(verdict: Verdict) -> CompareVerdict:
    """The verdict of a comparison that was tested."""
    if verdict is Verdict.GOOD:
        return CompareVerdict.NO_REGRESSION
    if verdict is Verdict.BAD:
        return CompareVerdict.REGRESSION
    return CompareVerdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact on which two files differ, so that their scores say nothing about each other."""

    field: str
    before: object
    after: object

    def __str__(self) -> str:
        return f"{self.field}: {self.before} and {self.after}"


@dataclass(frozen=True, slots=True)
class Discordant:
    """A question that exactly one of the two answered rightly, with both answers where known."""

    id: QuestionId
    prompt: str | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class CompareReport:
    """Two scores compared. `comparison` and `judgement` are None where nothing was tested.

    Against a baseline there is a judgement (of one score) and no comparison.
    `lost` were right before and wrong after, `gained` the reverse; empty unless paired.
    """

    before: ScoreFile
    after: ScoreFile
    verdict: CompareVerdict
    reason: str
    comparison: PairedComparison | UnpairedComparison | None = None
    judgement: Judgement | ScoreJudgement | None = None
    differing: tuple[Difference, ...] = ()
    lost: tuple[Discordant, ...] = ()
    gained: tuple[Discordant, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code

    @property
    def paired(self) -> bool:
        return isinstance(self.comparison, PairedComparison)


def compare(
    before: ScoreFile,
    after: ScoreFile,
    *,
    alpha: float = ALPHA,
    smallest_drop: float = SMALLEST_DROP,
    allow: Collection[str] = (),
) -> CompareReport:
    """Compare two scores: paired where their questions match, else unpaired and saying so.

    Not comparable where either is partial or lost to the infrastructure, or where a fact known of
    both differs that is not in `allow`. `alpha` is the two-sided level, `smallest_drop` the drop
    (fraction of one) that must have shown before the verdict is `no_regression`.
    """
    notes = [*before.notes, *after.notes]
    fewer = _count_differs(before, after)
    differing = differing_facts(before, after, fewer, allow)
    refused = refusal(before, after, differing, tuple(notes))
    if refused is not None:
        return refused
    for side in (before, after):
        if side.lost:
            notes.append(f"{side.source}: {side.lost} lost questions are left out")
    comparison, why_unpaired = _comparison(before, after)
    if comparison is None:
        return CompareReport(
            before, after, CompareVerdict.INCONCLUSIVE, why_unpaired, notes=tuple(notes)
        )
    if why_unpaired:
        notes.append(why_unpaired)
    judgement = judge(comparison, smallest_drop_of_interest=smallest_drop, alpha=alpha)
    lost: tuple[Discordant, ...] = ()
    gained: tuple[Discordant, ...] = ()
    if isinstance(comparison, PairedComparison):
        lost = tuple(_discordant(id, before, after) for id in comparison.lost_ids)
        gained = tuple(_discordant(id, before, after) for id in comparison.gained_ids)
    return CompareReport(
        before,
        after,
        compare_verdict(judgement.verdict),
        judgement.reason,
        comparison,
        judgement,
        lost=lost,
        gained=gained,
        notes=tuple(notes),
    )


def score_interval(score: ScoreFile) -> Interval | None:
    """95 % Wilson interval of a score, None where its counts are not known."""
    if score.correct is None or not score.answered:
        return None
    return wilson(score.correct, score.answered)


def refusal(
    before: ScoreFile,
    after: ScoreFile,
    differing: tuple[Difference, ...],
    notes: tuple[str, ...],
) -> CompareReport | None:
    """The report of two scores that must not be compared, None if they may be."""
    reason = before.unusable or after.unusable
    if reason is None and differing:
        named = "; ".join(map(str, differing))
        reason = f"they differ in {named} (--allow FIELD compares them nevertheless)"
    if reason is None:
        return None
    return CompareReport(
        before,
        after,
        CompareVerdict.NOT_COMPARABLE,
        reason,
        differing=differing,
        notes=notes,
    )


def differing_facts(
    before: ScoreFile, after: ScoreFile, count: Difference | None, allow: Collection[str]
) -> tuple[Difference, ...]:
    """Facts known of both that differ, and the count of questions if that does.

    What one of the files does not say cannot be checked.
    """
    found = [
        Difference(name, value, after.facts[name])
        for name, value in before.facts.items()
        if name in after.facts and after.facts[name] != value
    ]
    if count is not None:
        found.append(count)
    return tuple(difference for difference in found if difference.field not in allow)


def _count_differs(before: ScoreFile, after: ScoreFile) -> Difference | None:
    """The numbers of questions, if more than lost ones keep them apart."""
    asked, again = before.asked, after.asked
    if asked is None or again is None:
        return None
    if abs(asked - again) <= MAX_LOST_SHARE * max(asked, again):
        return None
    return Difference("n", asked, again)


def _comparison(
    before: ScoreFile, after: ScoreFile
) -> tuple[PairedComparison | UnpairedComparison | None, str]:
    """The comparison the files allow, and why it is not the paired one (empty if it is)."""
    why = _why_unpaired(before, after)
    if not why:
        assert before.answers is not None
        assert after.answers is not None
        return compare_paired(before.answers, after.answers), ""
    for side in (before, after):
        if side.correct is None or side.answered is None:
            return None, (
                f"{side.source} does not say how many questions its score rests on; give --asked N"
            )
    assert before.correct is not None
    assert before.answered is not None
    assert after.correct is not None
    assert after.answered is not None
    return (
        compare_unpaired(before.correct, before.answered, after.correct, after.answered),
        f"not paired: {why}",
    )


def _why_unpaired(before: ScoreFile, after: ScoreFile) -> str:
    for side in (before, after):
        if side.answers is None:
            return f"{side.source} has no answers per question"
    old, new = before.answers or {}, after.answers or {}
    shared = old.keys() & new.keys()
    fewer = min(len(old), len(new))
    if len(shared) < (1 - MAX_LOST_SHARE) * fewer or not shared:
        return f"only {len(shared)} questions of {fewer} are in both files"
    other = next(
        (
            question
            for question in shared
            if before.prompts.get(question) and after.prompts.get(question)
            if before.prompts[question] != after.prompts[question]
        ),
        None,
    )
    if other is not None:
        return f"question {other} is not the same question in both files"
    return ""


def _discordant(question: object, before: ScoreFile, after: ScoreFile) -> Discordant:
    assert isinstance(question, int | str)
    return Discordant(
        id=question,
        prompt=before.prompts.get(question) or after.prompts.get(question),
        before=before.texts.get(question),
        after=after.texts.get(question),
    )
