"""What `compare --json` prints; docs/compare.md describes every field."""

from __future__ import annotations

import dataclasses
from math import isfinite
from typing import Any

from poolbisect.comparison import CompareReport, Discordant, score_interval
from poolbisect.evidence.baseline import ScoreJudgement
from poolbisect.evidence.paired import PairedComparison
from poolbisect.formats import ScoreFile

SCHEMA = "poolbisect.compare/1"


def compare_document(report: CompareReport) -> dict[str, Any]:
    """The comparison as one JSON-ready object."""
    comparison, judgement = report.comparison, report.judgement
    paired = comparison if isinstance(comparison, PairedComparison) else None
    single = judgement if isinstance(judgement, ScoreJudgement) else None
    interval = comparison.interval if comparison is not None else None
    return {
        "schema": SCHEMA,
        "paired": report.paired,
        "n": _questions(report),
        "lost": paired.lost if paired else None,
        "gained": paired.gained if paired else None,
        "p_value": judgement.p_value if judgement else None,
        "difference": judgement.difference if judgement else None,
        "interval": [interval.low, interval.high] if interval else None,
        "detectable": judgement.detectable if judgement else None,
        "questions_needed": _needed(report),
        "z": single.z if single and isfinite(single.z) else None,
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "reason": report.reason,
        "differing": [dataclasses.asdict(difference) for difference in report.differing],
        "notes": list(report.notes),
        "before": _side(report.before),
        "after": _side(report.after),
        "lost_questions": [_question(one) for one in report.lost],
        "gained_questions": [_question(one) for one in report.gained],
    }


def _side(score: ScoreFile) -> dict[str, Any]:
    interval = score_interval(score)
    return {
        "source": score.source,
        "format": score.format,
        "score": score.score,
        "interval": [interval.low, interval.high] if interval else None,
        "correct": score.correct,
        "asked": score.asked,
        "answered": score.answered,
        "accept_length": score.accept_length,
        "partial": score.partial,
        "ended": score.ended,
        "facts": dict(score.facts),
    }


def _questions(report: CompareReport) -> int | None:
    """Questions the verdict rests on: the shared ones, or those of the smaller side."""
    comparison = report.comparison
    if isinstance(comparison, PairedComparison):
        return comparison.n
    if comparison is not None:
        return min(comparison.before_asked, comparison.after_asked)
    return report.after.answered if report.judgement else None


def _needed(report: CompareReport) -> int | None:
    judgement = report.judgement
    return None if isinstance(judgement, ScoreJudgement | None) else judgement.questions_needed


def _question(one: Discordant) -> dict[str, Any]:
    return dataclasses.asdict(one)
