"""Comparing two scores: paired where questions match, and nothing concluded from what is not
comparable."""

from __future__ import annotations

import pytest

from poolbisect.comparison import CompareReport, CompareVerdict, compare
from poolbisect.evidence.paired import PairedComparison
from poolbisect.evidence.unpaired import UnpairedComparison
from poolbisect.formats import ScoreFile


def answers(both: int, lost: int, gained: int, neither: int) -> tuple[ScoreFile, ScoreFile]:
    """Two files over the same questions with the given cells."""
    before = [True] * (both + lost) + [False] * (gained + neither)
    after = [True] * both + [False] * lost + [True] * gained + [False] * neither
    return score_of(before, "a"), score_of(after, "b")


def score_of(right: list[bool], name: str, first: int = 0, **more: object) -> ScoreFile:
    return ScoreFile(
        source=name,
        format="test",
        score=sum(right) / len(right),
        asked=len(right),
        answered=len(right),
        answers={first + number: value for number, value in enumerate(right)},
        **more,  # type: ignore[arg-type]
    )


def total(correct: int, asked: int, name: str = "a", **facts: str | int) -> ScoreFile:
    return ScoreFile(name, "test", correct / asked, asked, asked, facts=facts)


def test_matching_questions_are_paired() -> None:
    """155 to 141 right of 200: 17 lost, 3 gained."""
    report = compare(*answers(138, 17, 3, 42))
    assert report.verdict is CompareVerdict.REGRESSION
    assert report.exit_code == 1
    assert isinstance(report.comparison, PairedComparison)
    assert report.comparison.p_value == pytest.approx(0.0026, abs=5e-5)
    assert [one.id for one in report.lost] == list(range(138, 155))
    assert [one.id for one in report.gained] == [155, 156, 157]


def test_the_same_scores_without_answers_show_nothing_and_say_so() -> None:
    report = compare(total(155, 200), total(141, 200, "b"))
    assert report.verdict is CompareVerdict.INCONCLUSIVE
    assert report.exit_code == 4
    assert isinstance(report.comparison, UnpairedComparison)
    assert report.comparison.p_value == pytest.approx(0.11, abs=5e-3)
    assert any("not paired" in note for note in report.notes)


@pytest.mark.parametrize(
    ("before", "after", "n", "z", "p", "verdict"),
    [
        (1024, 950, 1319, -3.32, 0.0009, CompareVerdict.REGRESSION),
        (155, 144, 200, -1.27, 0.21, CompareVerdict.INCONCLUSIVE),
    ],
)
def test_totals(
    before: int, after: int, n: int, z: float, p: float, verdict: CompareVerdict
) -> None:
    report = compare(total(before, n), total(after, n, "b"))
    assert isinstance(report.comparison, UnpairedComparison)
    assert report.comparison.z == pytest.approx(z, abs=5e-3)
    assert report.comparison.p_value == pytest.approx(p, abs=6e-3 if p > 0.01 else 5e-5)
    assert report.verdict is verdict


def test_no_regression_needs_a_run_that_would_have_shown_one() -> None:
    enough = compare(*answers(1024, 0, 0, 295))
    assert (enough.verdict, enough.exit_code) == (CompareVerdict.NO_REGRESSION, 0)
    too_few = compare(*answers(31, 0, 0, 9))
    assert (too_few.verdict, too_few.exit_code) == (CompareVerdict.INCONCLUSIVE, 4)
    assert too_few.judgement is not None
    assert "questions would do" in too_few.reason


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("shots", 5, 3),
        ("hardware", "8 x H200", "8 x B200"),
        ("sampling", "greedy", "temperature 0.6"),
        ("harness_version", "lm-eval 0.4.8", "lm-eval 0.4.9"),
    ],
)
def test_a_differing_fact_is_named_and_nothing_concluded(
    field: str, old: str | int, new: str | int
) -> None:
    before, after = total(1024, 1319, **{field: old}), total(1, 1319, "b", **{field: new})
    report = compare(before, after)
    assert (report.verdict, report.exit_code) == (CompareVerdict.NOT_COMPARABLE, 4)
    assert report.comparison is None
    assert f"{field}: {old} and {new}" in report.reason
    assert compare(before, after, allow=[field]).verdict is CompareVerdict.REGRESSION


def test_different_numbers_of_questions_are_not_comparable() -> None:
    report = compare(total(1024, 1319), total(144, 200, "b"))
    assert report.verdict is CompareVerdict.NOT_COMPARABLE
    assert "n: 1319 and 200" in report.reason


def test_the_first_of_many_questions_are_paired_if_the_user_allows_it() -> None:
    whole, first = score_of([True] * 1319, "a"), score_of([True] * 180 + [False] * 20, "b")
    report = compare(whole, first, allow=["n"])
    assert isinstance(report.comparison, PairedComparison)
    assert (report.comparison.n, report.comparison.lost) == (200, 20)


def test_other_questions_under_the_same_ids_are_not_paired() -> None:
    before = score_of([True] * 20, "a", prompts={n: f"{n}+1" for n in range(20)})
    after = score_of([True] * 20, "b", prompts={n: f"{n}+2" for n in range(20)})
    report = compare(before, after)
    assert isinstance(report.comparison, UnpairedComparison)
    assert any("not the same question" in note for note in report.notes)
    elsewhere = compare(before, score_of([True] * 20, "b", first=100))
    assert any("only 0 questions of 20" in note for note in elsewhere.notes)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"partial": True}, "partial run"),
        ({"ended": "crashed"}, "not measured (crashed)"),
        ({"answered": 160, "answers": None}, "lost 40 of 200 questions"),
    ],
)
def test_a_partial_or_lost_run_is_not_comparable(more: dict[str, object], named: str) -> None:
    import dataclasses

    before, after = answers(138, 17, 3, 42)
    unusable = dataclasses.replace(after, **more)  # type: ignore[arg-type]
    for pair in ((before, unusable), (unusable, before)):
        report: CompareReport = compare(*pair)
        assert (report.verdict, report.exit_code) == (CompareVerdict.NOT_COMPARABLE, 4)
        assert named in report.reason
        assert report.comparison is None


def test_a_few_lost_questions_are_left_out_and_said() -> None:
    before = score_of([True] * 1024 + [False] * 295, "a")
    kept = {q: right for q, right in (before.answers or {}).items() if q >= 10}
    after = ScoreFile("b", "test", 1014 / 1309, 1319, 1309, answers=kept)
    report = compare(before, after)
    assert isinstance(report.comparison, PairedComparison)
    assert (report.comparison.n, report.comparison.lost) == (1309, 0)
    assert any("10 lost questions are left out" in note for note in report.notes)


def test_a_score_of_unknown_size_is_inconclusive() -> None:
    bare = ScoreFile("a.log", "test", 0.776)
    report = compare(bare, bare)
    assert report.exit_code == 4
    assert "--asked" in report.reason
