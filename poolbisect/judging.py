"""From measurements to verdicts: one subject against the reference, then the run as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from poolbisect.baselines import BaselineComparison
from poolbisect.evidence.paired import PairedComparison, compare_paired
from poolbisect.evidence.paired_lengths import compare_lengths
from poolbisect.evidence.verdict import Verdict, judge
from poolbisect.measurement import Ended, Measurement
from poolbisect.scenario import Expectation, Scenario, Symptom


@dataclass(frozen=True, slots=True)
class SubjectVerdict:
    """What is concluded of one subject. `questions_needed` is set where more would decide."""

    measurement: Measurement
    verdict: Verdict
    reason: str
    expectation: Expectation | None
    comparison: PairedComparison | None = None
    questions_needed: int | None = None
    baseline_note: str = ""

    @property
    def as_expected(self) -> bool | None:
        """Whether the expectation is met; None without one or without a verdict."""
        if self.expectation is None or self.verdict not in (Verdict.GOOD, Verdict.BAD):
            return None
        return self.verdict.value == self.expectation.value


class RunVerdict(StrEnum):
    """What is concluded of a run."""

    AS_EXPECTED = "as_expected"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self]


_EXIT_CODES = {
    RunVerdict.AS_EXPECTED: 0,
    RunVerdict.REGRESSION: 1,
    RunVerdict.INFRASTRUCTURE: 3,
    RunVerdict.INCONCLUSIVE: 4,
    RunVerdict.INTERRUPTED: 130,
}


def judge_subject(
    measurement: Measurement,
    reference: Measurement | None,
    scenario: Scenario,
    questions_to_last_slot: int | None,
    baseline: BaselineComparison,
) -> SubjectVerdict:
    """Judge one subject; `reference` is None for the reference subject itself, which `baseline`
    judges instead.

    `questions_to_last_slot` is how many questions a run needs until every rank has used its last
    slot, None if no number does.
    """
    expectation = scenario.expectation(measurement.subject)

    slots = measurement.slots
    uncovered = slots is not None and not slots.last_slot_used

    def conclude(verdict: Verdict, reason: str, **more: object) -> SubjectVerdict:
        if verdict is Verdict.GOOD and uncovered:
            verdict = Verdict.UNKNOWN
            reason = f"{reason}, but the last request slot was not used on every rank"
        return SubjectVerdict(measurement, verdict, reason, expectation, **more)  # type: ignore[arg-type]

    if measurement.ended is not Ended.MEASURED:
        verdict, reason = _judge_ending(measurement, scenario)
        return conclude(verdict, reason)
    breached = bool(measurement.memory.buffers) and reference is not None
    if slots is not None and not slots.last_slot_used and not breached:
        needed = questions_to_last_slot
        advice = f"; {needed} questions would reach it" if needed else ""
        return conclude(
            Verdict.UNKNOWN,
            f"nothing proven: request slot {slots.last_slot}, the last one, was not used on "
            f"every rank{advice}",
            questions_needed=needed,
        )
    if reference is None:
        return _judge_reference(measurement, expectation, baseline)
    if reference.ended is not Ended.MEASURED:
        return conclude(Verdict.UNKNOWN, f"the reference {reference.subject} was not measured")
    comparison = compare_paired(reference.outcomes(), measurement.outcomes())
    if scenario.symptom is Symptom.CRASH:
        return conclude(Verdict.GOOD, "did not crash", comparison=comparison)
    if scenario.symptom is Symptom.ACCEPT_LENGTH:
        verdict, reason = _judge_accept_length(measurement, reference, scenario)
        return conclude(verdict, reason, comparison=comparison)
    if scenario.symptom is Symptom.CONTRACT:
        verdict, reason = _judge_contract(measurement)
        return conclude(verdict, reason, comparison=comparison)
    judgement = judge(
        comparison,
        smallest_drop_of_interest=scenario.judging.smallest_drop,
        alpha=scenario.judging.alpha,
    )
    needed = judgement.questions_needed
    if needed is not None and questions_to_last_slot is not None:
        needed = max(needed, questions_to_last_slot)
    return conclude(
        judgement.verdict, judgement.reason, comparison=comparison, questions_needed=needed
    )


def _judge_ending(measurement: Measurement, scenario: Scenario) -> tuple[Verdict, str]:
    detail = measurement.detail
    if measurement.ended is Ended.CRASHED:
        if scenario.symptom is Symptom.CRASH:
            return Verdict.BAD, f"crashed: {detail}"
        return Verdict.UNTESTABLE, f"crashed, which is not this scenario's symptom: {detail}"
    if measurement.ended is Ended.STOPPED:
        return Verdict.BAD, f"stopped at the first out-of-range access: {detail}"
    if measurement.ended is Ended.PARTIAL:
        return Verdict.UNKNOWN, detail
    return Verdict.UNTESTABLE, detail


def _judge_accept_length(
    measurement: Measurement, reference: Measurement, scenario: Scenario
) -> tuple[Verdict, str]:
    """Accept lengths of the same questions, paired: see poolbisect.evidence.paired_lengths.

    A few questions cannot be significant; but when none rose and the guard saw padded rows write
    to an index that somebody owned, the cause is on record and the fall is one.
    """
    compared = compare_lengths(reference.accept_lengths(), measurement.accept_lengths())
    if compared.differing == 0:
        return Verdict.GOOD, "no question's accept length differs"
    words = (
        f"the accept length of {compared.fell} questions fell and of {compared.rose} rose "
        f"(mean of those that differ {compared.before:.2f} before, {compared.after:.2f} after, "
        f"p = {compared.p_value:.2g})"
    )
    fell = compared.after < compared.before
    if fell and compared.p_value < scenario.judging.alpha:
        return Verdict.BAD, words
    memory = measurement.memory
    if fell and not compared.rose and memory.padded_writes:
        targets = ", ".join(memory.padded_targets)
        return Verdict.BAD, f"{words}, and padded rows wrote to {targets} while a request owned it"
    # The smallest p that so many signs can give (Wilcoxon 1945) must be able to reach alpha.
    if fell and 2.0 ** (1 - compared.differing) >= scenario.judging.alpha:
        return Verdict.UNKNOWN, f"too few questions differ to say: {words}"
    return Verdict.GOOD, f"no significant fall: {words}"


def _judge_contract(measurement: Measurement) -> tuple[Verdict, str]:
    memory = measurement.memory
    if not memory.watched:
        return Verdict.UNKNOWN, "accesses were not watched: use --memory guard"
    if memory.buffers or memory.padded_writes:
        return Verdict.BAD, (
            f"{memory.reads + memory.writes} out-of-range accesses and {memory.padded_writes} "
            "writes of padded rows to an index somebody owned"
        )
    return Verdict.GOOD, "every access was within its buffer"


def _judge_reference(
    measurement: Measurement, expectation: Expectation | None, baseline: BaselineComparison
) -> SubjectVerdict:
    if baseline.fell:
        verdict, reason = Verdict.BAD, baseline.note
    else:
        verdict, reason = Verdict.GOOD, "the reference of this comparison"
    return SubjectVerdict(measurement, verdict, reason, expectation, baseline_note=baseline.note)


def judge_run(verdicts: list[SubjectVerdict]) -> RunVerdict:
    """The run's verdict: the worst of its subjects, a met expectation being no fault."""
    if any(v.measurement.ended is Ended.PARTIAL for v in verdicts):
        return RunVerdict.INTERRUPTED
    if any(v.measurement.ended is Ended.INFRA for v in verdicts):
        return RunVerdict.INFRASTRUCTURE
    if any(
        v.as_expected is False or (v.expectation is None and v.verdict is Verdict.BAD)
        for v in verdicts
    ):
        return RunVerdict.REGRESSION
    if any(v.verdict in (Verdict.UNKNOWN, Verdict.UNTESTABLE) for v in verdicts):
        return RunVerdict.INCONCLUSIVE
    return RunVerdict.AS_EXPECTED
