"""Is a series bad tonight? Every test of the night, corrected for all of them together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poolbisect.evidence.multiple import judge_jointly
from poolbisect.evidence.verdict import Judgement, Verdict
from poolbisect.nightly.comparisons import BASELINE, Comparison, Rules, comparisons_of
from poolbisect.nightly.past import last_good
from poolbisect.nightly.series import SeriesKey, Tonight
from poolbisect.scenario import Symptom

METHOD = "holm"


@dataclass(frozen=True, slots=True)
class Judged:
    """A series after the correction. `worst` is the most telling test that makes it bad, if
    one does; `adjusted` that test's p-value after the correction."""

    tonight: Tonight
    verdict: Verdict
    reason: str
    tests: tuple[Comparison, ...] = ()
    worst: Comparison | None = None
    adjusted: float | None = None

    @property
    def key(self) -> SeriesKey:
        return self.tonight.key

    @property
    def loss(self) -> float | None:
        """The drop in accuracy it is bad by (share of one), None if it is not, or not by that."""
        return None if self.worst is None else self.worst.loss


@dataclass(frozen=True, slots=True)
class JointNight:
    """All series of a night, and how many tests were corrected for."""

    series: tuple[Judged, ...]
    tests: int
    alpha: float

    @property
    def text(self) -> str:
        if not self.tests:
            return "nothing to compare with yet"
        if self.tests == 1:
            return f"one test: the chance of a false alarm is at most {self.alpha:g}"
        return (
            f"{self.tests} tests together: the chance of any false alarm is at most "
            f"{self.alpha:g} (Holm's correction)"
        )


def judge_night(series: Sequence[Tonight], rules: Rules) -> JointNight:
    """Judge all series of a night at once, so that more scenarios raise no more false alarms."""
    tests = {tonight.key: comparisons_of(tonight, rules) for tonight in series}
    named = {(key, test.against): test.judgement for key, found in tests.items() for test in found}
    labels = {f"{key} against {against}": (key, against) for key, against in named}
    adjusted: dict[tuple[SeriesKey, str], float] = {}
    corrected: dict[tuple[SeriesKey, str], Judgement] = {}
    if named:
        joint = judge_jointly({label: named[one] for label, one in labels.items()}, rules.alpha)
        adjusted = {labels[label]: p for label, p in joint.adjusted.items()}
        corrected = {labels[label]: j for label, j in joint.scenarios.items()}
    judged = []
    for tonight in series:
        found = tuple(
            Comparison(test.against, corrected[tonight.key, test.against], test.paired, test.loss)
            for test in tests[tonight.key]
        )
        p_values = {test.against: adjusted[tonight.key, test.against] for test in found}
        judged.append(_conclude(tonight, found, p_values))
    return JointNight(tuple(judged), len(named), rules.alpha)


def _conclude(
    tonight: Tonight, tests: tuple[Comparison, ...], adjusted: Mapping[str, float]
) -> Judged:
    bad = [test for test in tests if test.judgement.verdict is Verdict.BAD]
    if bad:
        worst = min(bad, key=lambda test: test.rank)
        reason = f"{worst.judgement.reason} against {worst.against}"
        if worst.against == BASELINE:
            reason = worst.judgement.reason
        return Judged(tonight, Verdict.BAD, reason, tests, worst, adjusted[worst.against])
    own = tonight.verdict
    memory = tonight.measurement.memory
    breached = bool(memory.buffers or memory.padded_writes)
    if tonight.measured and tonight.scenario.symptom is Symptom.CONTRACT and breached:
        # `run` compares with the reference and so does not judge the reference's own accesses.
        accesses = f"{memory.reads + memory.writes} out-of-range accesses and "
        writes = f"{memory.padded_writes} writes of padded rows to an index somebody owned"
        return Judged(tonight, Verdict.BAD, accesses + writes, tests)
    if not tonight.measured or _is_fact(tonight):
        return Judged(tonight, own.verdict, own.reason, tests)
    if tonight.uncovered:
        return Judged(tonight, Verdict.UNKNOWN, own.reason, tests)
    good = [test for test in tests if test.judgement.verdict is Verdict.GOOD]
    # A recorded spread too wide to show a drop must not keep a first night from being the record.
    paired = [test for test in tests if test.against != BASELINE]
    if not good and not paired:
        reason = f"{own.reason}; nothing to compare it with yet" if _first(tonight) else own.reason
        return Judged(tonight, own.verdict, reason, tests)
    chosen = min(good or paired, key=lambda test: test.rank)
    verdict = Verdict.GOOD if good else Verdict.UNKNOWN
    reason = f"against {chosen.against}: {chosen.judgement.reason}"
    return Judged(tonight, verdict, reason, tests)


def _is_fact(tonight: Tonight) -> bool:
    """Whether `run`'s verdict is no matter of chance: a crash, or what the guard recorded."""
    own, symptom = tonight.verdict.verdict, tonight.scenario.symptom
    if tonight.reference is None:
        return False
    if symptom in (Symptom.CRASH, Symptom.CONTRACT):
        return True
    return (
        symptom is Symptom.ACCEPT_LENGTH
        and own is Verdict.BAD
        and bool(tonight.measurement.memory.padded_writes)
    )


def _first(tonight: Tonight) -> bool:
    return tonight.reference is None and last_good(tonight.past) is None
