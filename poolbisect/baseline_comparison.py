"""The workflow of `compare baseline:SCENARIO B`: one score against a recorded one."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path

from poolbisect.baselines import SMALLEST_DROP as MINIMUM_EFFECT
from poolbisect.baselines import Baseline, baseline_file, gate_note, load_baselines
from poolbisect.comparison import (
    ALPHA,
    SMALLEST_DROP,
    CompareReport,
    CompareVerdict,
    Difference,
    compare_verdict,
    differing_facts,
    refusal,
)
from poolbisect.errors import UsageError
from poolbisect.evidence.baseline import judge_score
from poolbisect.formats import ScoreFile

PREFIX = "baseline:"


def named_baselines(text: str, folder: Path | None = None) -> list[Baseline]:
    """The baselines `baseline:SCENARIO` or `baseline:SCENARIO/NAME` names, at least one.

    UsageError where there is none of that name.
    """
    scenario, _, name = text.removeprefix(PREFIX).partition("/")
    recorded = load_baselines(scenario, folder)
    named = [baseline for baseline in recorded if not name or baseline.name == name]
    if not named:
        known = ", ".join(baseline.name for baseline in recorded) or "none is recorded"
        raise UsageError(
            f"{text}: no such baseline in {baseline_file(scenario, folder)} ({known}); "
            "`poolbisect baseline list` shows all"
        )
    return named


def baseline_score(baseline: Baseline) -> ScoreFile:
    """A baseline as a score file: its mean, and its key as facts."""
    facts = {
        name: value
        for name, value in dataclasses.asdict(baseline.key).items()
        if name != "n" and value is not None
    }
    return ScoreFile(
        source=baseline.name,
        format="baseline",
        score=baseline.mean,
        asked=baseline.n,
        answered=baseline.n,
        accept_length=baseline.accept_length,
        facts=facts,
    )


def compare_to_baseline(
    baselines: list[Baseline],
    after: ScoreFile,
    *,
    alpha: float = ALPHA,
    smallest_drop: float = SMALLEST_DROP,
    allow: Collection[str] = (),
) -> CompareReport:
    """Compare a score with the baseline whose key agrees, else name what the closest differs in.

    A drop counts from one point on. The gate is judged apart, in the notes.
    """
    judged = [(baseline, *_keyed(baseline, after, allow)) for baseline in baselines]
    baseline, before, differing = min(judged, key=lambda one: len(one[2]))
    refused = refusal(before, after, differing, after.notes)
    if refused is not None:
        return refused
    if after.score is None:
        return CompareReport(before, after, CompareVerdict.INCONCLUSIVE, "no question was answered")
    judgement = judge_score(
        after.score,
        baseline.recorded,
        smallest_drop_of_interest=smallest_drop,
        gate=baseline.gate.of_score if baseline.gate else None,
        alpha=alpha,
        minimum_effect=MINIMUM_EFFECT,
    )
    return CompareReport(
        before,
        after,
        compare_verdict(judgement.verdict),
        judgement.reason,
        judgement=judgement,
        notes=(*after.notes, *_notes(baseline, before, after)),
    )


def _keyed(
    baseline: Baseline, after: ScoreFile, allow: Collection[str]
) -> tuple[ScoreFile, tuple[Difference, ...]]:
    before = baseline_score(baseline)
    count = None
    if after.asked is not None and after.asked != baseline.n:
        count = Difference("n", baseline.n, after.asked)
    return before, differing_facts(before, after, count, allow)


def _notes(baseline: Baseline, before: ScoreFile, after: ScoreFile) -> list[str]:
    notes = [f"± {baseline.spread:g} is {baseline.spread_kind}"]
    missing = [name for name in before.facts if name not in after.facts]
    if after.asked is None:
        missing.append("n")
    if missing:
        notes.append(f"{after.source} does not say, so taken as equal: {', '.join(missing)}")
    check = baseline.check(after.score or 0.0)
    if check is not None:
        notes.append(f"the score{gate_note(baseline, check).lstrip(';').removeprefix(' it')}")
    gate = baseline.gate.accept_length if baseline.gate else None
    if gate is not None and after.accept_length is not None and after.accept_length < gate:
        notes.append(f"accept length {after.accept_length:.3g} fails its gate {gate:g}")
    return notes
