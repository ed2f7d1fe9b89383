from __future__ import annotations

import numpy as np
import pytest

from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Ending, Find, Kind, Observation, ProbeRequest
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.bisection.search import Search

from .subjects import Subject, bisect, level, names, questions, run, scores, verdicts

QUICK = Plan(mode=Mode.COUNTS, end_questions=200, costs=CostModel(switch=300))


@pytest.mark.parametrize("culprit", [1, 2, 20, 38, 39])
def test_a_large_drop_is_found_wherever_it_is(culprit: int) -> None:
    result = bisect(40, QUICK, scores(level(40, (0, 0.8), (culprit, 0.4)), culprit))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, culprit)
    assert result.confidence >= 0.99


def test_the_first_fixed_commit_is_the_first_with_the_better_score() -> None:
    plan = Plan(mode=Mode.COUNTS, find=Find.FIXED, end_questions=200)
    result = bisect(40, plan, scores(level(40, (0, 0.4), (23, 0.8)), 5))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 23)


def test_paired_answers_find_a_small_drop_with_few_questions() -> None:
    result = bisect(64, Plan(mode=Mode.PAIRED), questions(41, 3))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 41)
    assert result.spent.questions < 3500


def test_confidence_and_hits_agree() -> None:
    """The 99 % answers of 40 seeded searches over a 10 point drop: at most 2 wrong."""
    plan = Plan(mode=Mode.COUNTS, end_questions=300, costs=CostModel(switch=500))
    rng = np.random.default_rng(7)
    wrong = answered = 0
    for seed in range(40):
        culprit = int(rng.integers(1, 32))
        result = bisect(32, plan, scores(level(32, (0, 0.8), (culprit, 0.7)), seed))
        answered += result.culprit is not None
        wrong += result.culprit not in (None, culprit)
    assert answered >= 38
    assert wrong <= 2


def test_flaky_verdicts_end_in_the_right_culprit_or_a_range() -> None:
    """30 % of runs of bad commits look good: at most 1 of 60 confident answers is wrong."""
    rng = np.random.default_rng(11)
    wrong = answered = 0
    for seed in range(60):
        culprit = int(rng.integers(1, 25))
        plan = Plan(mode=Mode.VERDICTS, budget=Budget(probes=60), costs=CostModel(switch=1))
        result = bisect(25, plan, verdicts(level(25, (0, 1.0), (culprit, 0.3)), seed))
        answered += result.culprit is not None
        wrong += result.culprit not in (None, culprit)
        if result.suspects is not None and result.culprit is None:
            assert result.exit_code == 4
    assert answered >= 40
    assert wrong <= 1


def test_steady_verdicts_cost_about_twice_a_binary_search() -> None:
    plan = Plan(mode=Mode.VERDICTS, costs=CostModel(switch=1))
    result = bisect(64, plan, verdicts(level(64, (0, 1.0), (21, 0.0)), 0))
    assert result.culprit == 21
    assert result.spent.probes <= 20


def test_a_commit_that_misleads_every_time_leaves_a_range() -> None:
    """With `noise.commit` 1 repeats teach nothing, so nobody is blamed on them."""
    plan = Plan(mode=Mode.VERDICTS, noise=Noise(commit=1.0), budget=Budget(probes=80))

    def probe(request: ProbeRequest) -> Observation:
        rates = level(32, (0, 1.0), (20, 0.0), (20, 1.0), (21, 0.0))
        return verdicts(rates, 0)(request)

    result = bisect(32, plan, probe)
    assert result.culprit is None
    assert result.suspects is not None
    assert result.suspects[0] <= 20 <= result.suspects[1]


@pytest.mark.parametrize(("rule", "kind"), [(0.7, Kind.BOTH_GOOD), (0.9, Kind.BOTH_BAD)])
def test_ends_that_do_not_differ(rule: float, kind: Kind) -> None:
    plan = Plan(mode=Mode.COUNTS, end_questions=300, max_end_questions=600, rule=rule)
    result = bisect(32, plan, scores(np.full(32, 0.8), 1))
    assert result.kind is kind
    assert result.exit_code == 2


def test_a_better_bad_end_is_said_to_be_the_other_way_round() -> None:
    result = bisect(32, QUICK, scores(level(32, (0, 0.5), (9, 0.8)), 1))
    assert result.kind is Kind.REVERSED
    assert "other way round" in result.reason


def test_a_slope_is_drift_and_blames_nobody() -> None:
    result = bisect(40, QUICK, scores(np.linspace(0.85, 0.45, 40), 2))
    assert (result.kind, result.culprit) == (Kind.DRIFT, None)


@pytest.mark.parametrize(("rule", "culprit", "other"), [(0.75, 10, 30), (0.55, 30, 10)])
def test_of_two_steps_the_one_across_the_rule_is_named(
    rule: float, culprit: int, other: int
) -> None:
    plan = Plan(mode=Mode.COUNTS, end_questions=300, rule=rule, costs=CostModel(switch=200))
    result = bisect(40, plan, scores(level(40, (0, 0.8), (10, 0.65), (30, 0.5)), 3))
    assert (result.kind, result.culprit, result.exit_code) == (Kind.SECOND_STEP, culprit, 0)
    first, last = result.others[0]
    assert first <= other <= last


def test_scores_that_follow_the_runner_are_no_step() -> None:
    """Two runners, drawn anew for each probe, and the ends measured again before blame."""
    plan = Plan(mode=Mode.COUNTS, end_questions=200, recheck_ends=True)
    blamed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)

        def probe(request: ProbeRequest, rng: np.random.Generator = rng) -> Observation:
            rate = rng.choice([0.9, 0.6])
            return Observation.counts(int(rng.binomial(request.questions, rate)), request.questions)

        blamed += bisect(40, plan, probe).culprit is not None
    assert blamed <= 3


def test_an_end_that_scores_differently_later_is_the_environment() -> None:
    search = Search(names(40), QUICK)
    subject = scores(level(40, (0, 0.8), (21, 0.4)), 5)
    run(search, subject)
    search.record(0, Observation.counts(80, 200))
    result = search.next()
    assert result.kind is Kind.ENVIRONMENT  # type: ignore[union-attr]


def with_broken(subject: Subject, broken: range) -> Subject:
    def probe(request: ProbeRequest) -> Observation:
        if request.position in broken:
            return Observation.failed(Ending.BUILD_FAILED)
        return subject(request)

    return probe


def test_a_broken_block_around_the_culprit_is_a_range() -> None:
    subject = with_broken(scores(level(64, (0, 0.8), (30, 0.4)), 6), range(25, 35))
    result = bisect(64, QUICK, subject)
    assert (result.kind, result.suspects) == (Kind.SUSPECT_RANGE, (25, 35))


def test_budgets_end_in_a_credible_range_that_holds_the_culprit() -> None:
    for budget in (Budget(questions=1500), Budget(probes=6), Budget(seconds=1.0)):
        plan = Plan(mode=Mode.COUNTS, end_questions=300, budget=budget)
        inner = scores(level(64, (0, 0.8), (30, 0.7)), 8)

        def probe(request: ProbeRequest, inner: Subject = inner) -> Observation:
            seen = inner(request)
            return Observation.counts(seen.correct, seen.asked, seconds=0.2)

        result = bisect(64, plan, probe)
        assert (result.kind, result.exit_code) == (Kind.SUSPECT_RANGE, 4)
        assert result.suspects is not None
        assert result.suspects[0] <= 30 <= result.suspects[1]
        if budget.questions:
            assert result.spent.questions <= budget.questions


def test_lost_questions_are_not_wrong_ones() -> None:
    inner = questions(20, 9)

    def probe(request: ProbeRequest) -> Observation:
        seen = inner(request).outcomes or ""
        return Observation.answers("-" * 10 + seen[10:], offset=request.offset)

    assert bisect(40, Plan(mode=Mode.PAIRED), probe).culprit == 20


def test_a_baseline_saves_questions() -> None:
    rates = level(64, (0, 0.776), (30, 0.70))
    spent = []
    for baseline in (None, (5118, 6595)):
        plan = Plan(mode=Mode.COUNTS, baseline=baseline, costs=CostModel(switch=500))
        results = [bisect(64, plan, scores(rates, seed)) for seed in range(6)]
        assert all(r.culprit == 30 for r in results)
        spent.append(sum(r.spent.questions for r in results))
    assert spent[1] < spent[0]
