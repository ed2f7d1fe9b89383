from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.bisection.outcome import Ending, Find, Kind, Observation, ProbeRequest, Verdict
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.bisection.search import Search
from poolbisect.errors import UsageError

from .subjects import bisect, names, run, step

GOOD, BAD = Observation.judged(Verdict.GOOD), Observation.judged(Verdict.BAD)


@given(st.data())
def test_every_culprit_is_found_in_binary_search_time(data: st.DataObject) -> None:
    commits = data.draw(st.integers(2, 7000))
    culprit = data.draw(st.integers(1, commits - 1))
    result = bisect(commits, Plan(), step(culprit))
    assert (result.kind, result.culprit, result.exit_code) == (Kind.CULPRIT, culprit, 0)
    assert result.spent.probes <= math.ceil(math.log2(commits - 1)) + 2


@pytest.mark.parametrize("culprit", range(1, 25))
def test_first_bad_at_every_position_of_25(culprit: int) -> None:
    assert bisect(25, Plan(), step(culprit)).culprit == culprit
    fixed = bisect(25, Plan(find=Find.FIXED), step(culprit, fixed=True))
    assert fixed.culprit == culprit


def test_good_bad_good_has_a_first_bad_and_a_first_fixed() -> None:
    def probe(request: ProbeRequest) -> Observation:
        return BAD if 8 <= request.position < 16 else GOOD

    assert run(Search(names(13), Plan()), probe).culprit == 8
    search = Search(names(24)[10:], Plan(find=Find.FIXED))
    shifted = run(search, lambda r: probe(ProbeRequest(r.position + 10)))
    assert search.names[shifted.culprit or 0] == "c16"


@given(st.data())
def test_untestable_commits_never_put_the_blame_on_another(data: st.DataObject) -> None:
    commits = data.draw(st.integers(2, 80))
    culprit = data.draw(st.integers(1, commits - 1))
    inside = st.integers(1, max(commits - 2, 1))
    broken = data.draw(st.frozensets(inside, max_size=commits)) - {0, commits - 1}
    result = bisect(commits, Plan(), step(culprit, broken))
    if result.kind is Kind.CULPRIT:
        assert result.culprit == culprit
        assert culprit - 1 not in broken
        assert culprit not in broken
    else:
        assert result.kind is Kind.SUSPECT_RANGE
        assert result.exit_code == 4
        assert result.suspects is not None
        assert result.suspects[0] <= culprit <= result.suspects[1]


def test_three_untestable_before_the_first_bad_are_suspects_with_it() -> None:
    result = bisect(6, Plan(), step(5, frozenset({2, 3, 4})))
    assert (result.kind, result.suspects, result.exit_code) == (Kind.SUSPECT_RANGE, (2, 5), 4)


@pytest.mark.parametrize("broken", [{7, 8, 9}, {2}, {17, 18}])
def test_untestable_commits_away_from_the_culprit_do_not_blur_it(broken: set[int]) -> None:
    assert bisect(21, Plan(), step(13, frozenset(broken))).culprit == 13


@pytest.mark.parametrize("culprit", [12, 20, 30])
def test_a_block_of_25_in_40_costs_few_probes(culprit: int) -> None:
    result = bisect(41, Plan(), step(culprit, frozenset(range(8, 33))))
    assert result.kind is Kind.SUSPECT_RANGE
    assert result.suspects is not None
    assert result.suspects[0] <= culprit <= result.suspects[1]
    assert result.spent.probes <= 16


def test_both_ends_alike_are_results_of_their_own() -> None:
    assert bisect(9, Plan(), lambda _: GOOD).kind is Kind.BOTH_GOOD
    assert bisect(9, Plan(), lambda _: BAD).kind is Kind.BOTH_BAD


def test_ends_the_wrong_way_round_ask_for_the_other_question() -> None:
    result = bisect(9, Plan(), step(4, fixed=True))
    assert result.culprit is None
    assert result.kind is Kind.REVERSED
    assert "--find fixed" in result.reason


def test_a_suspect_and_its_parent_are_tested_first() -> None:
    search = Search(names(6000), Plan())
    search.suspect(4321)
    result = run(search, step(4321))
    assert (result.culprit, result.spent.probes) == (4321, 4)


def test_a_prior_leads_to_the_likely_commit_but_rules_none_out() -> None:
    weights = tuple(1.0 if i == 700 else 0.0 for i in range(1000))
    assert bisect(1000, Plan(weights=weights), step(700)).spent.probes == 4
    assert bisect(1000, Plan(weights=weights), step(123)).culprit == 123


def test_infrastructure_failures_are_repeated_and_never_count_against_a_commit() -> None:
    failures = {5: 1, 8: 2}

    def probe(request: ProbeRequest) -> Observation:
        if failures.get(request.position, 0):
            failures[request.position] -= 1
            return Observation.failed(Ending.INFRA)
        return step(9)(request)

    assert bisect(17, Plan(), probe).culprit == 9


def test_one_commit_that_always_loses_its_connection_is_passed_over() -> None:
    def probe(request: ProbeRequest) -> Observation:
        if request.position == 16:
            return Observation.failed(Ending.INFRA)
        return step(9)(request)

    assert bisect(33, Plan(infra_retries=1), probe).culprit == 9
    assert bisect(33, Plan(), probe).culprit == 9


def test_more_than_half_infrastructure_stops_and_can_be_resumed() -> None:
    search = Search(names(33), Plan(infra_retries=9))
    stopped = run(search, lambda _: Observation.failed(Ending.INFRA))
    assert (stopped.kind, stopped.exit_code) == (Kind.INFRASTRUCTURE, 3)
    search.resume()
    assert run(search, step(20)).culprit == 20


@pytest.mark.parametrize("ending", [Ending.CRASHED, Ending.TIMED_OUT, Ending.UNTESTABLE])
def test_other_endings_are_not_bad(ending: Ending) -> None:
    def probe(request: ProbeRequest) -> Observation:
        return Observation.failed(ending) if request.position == 10 else step(5)(request)

    assert bisect(21, Plan(), probe).culprit == 5


def test_a_crash_is_bad_where_the_symptom_is_a_crash() -> None:
    def probe(request: ProbeRequest) -> Observation:
        return Observation.failed(Ending.CRASHED) if request.position >= 7 else Observation()

    assert bisect(21, Plan(crash_is_bad=True), probe).culprit == 7


def test_a_commit_of_both_verdicts_is_flaky_and_an_end_is_the_environment() -> None:
    for position, kind in ((3, Kind.FLAKY), (0, Kind.ENVIRONMENT)):
        search = Search(names(8), Plan())
        run(search, step(3))
        search.record(position, GOOD)
        search.record(position, BAD)
        assert search.next().kind is kind  # type: ignore[union-attr]


def test_ends_measured_again_before_blame_reveal_a_changed_environment() -> None:
    seen: list[int] = []

    def probe(request: ProbeRequest) -> Observation:
        seen.append(request.position)
        return BAD if len(seen) > 5 else step(9)(request)

    result = bisect(17, Plan(recheck_ends=True), probe)
    assert result.kind is not Kind.CULPRIT
    steady = bisect(17, Plan(recheck_ends=True), step(9))
    assert (steady.culprit, steady.spent.probes) == (9, 8)


def test_a_budget_ends_in_the_open_range() -> None:
    result = bisect(1025, Plan(budget=Budget(probes=5)), step(300))
    assert (result.kind, result.suspects, result.exit_code) == (Kind.SUSPECT_RANGE, (257, 384), 4)
    assert result.spent.probes == 5


def test_forgetting_a_wrong_verdict_finds_the_right_commit() -> None:
    search = Search(names(17), Plan())
    for _ in range(2):
        request = search.next()
        assert isinstance(request, ProbeRequest)
        search.record(request.position, step(12)(request))
    search.record(8, BAD)
    search.forget(8)
    assert run(search, step(12)).culprit == 12


def test_skipped_ranges_are_not_probed_and_ends_cannot_be_skipped() -> None:
    search = Search(names(17), Plan())
    search.skip(5, 9)
    result = run(search, step(7))
    assert result.suspects == (5, 10)
    assert all(not 5 <= where <= 9 for where, _ in search.facts.measured)
    with pytest.raises(UsageError, match="c16 is an end"):
        search.skip(12, 16)


def test_a_second_introduction_seen_on_the_way_is_reported() -> None:
    search = Search(names(40), Plan())
    search.suspect(10)
    search.suspect(20)

    def probe(request: ProbeRequest) -> Observation:
        return BAD if 10 <= request.position < 15 or request.position >= 33 else GOOD

    result = run(search, probe)
    assert (result.kind, result.culprit, result.others) == (Kind.SECOND_STEP, 33, ((10, 10),))


def test_impossible_input_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="two commits"):
        Search(["a"], Plan())
    with pytest.raises(UsageError, match="outside the range"):
        Search(names(3), Plan()).record(3, GOOD)
    with pytest.raises(UsageError, match="c1 was measured without a verdict"):
        Search(names(3), Plan()).record(1, Observation.counts(3, 4))
    with pytest.raises(UsageError, match="c1 was measured without an answer"):
        Search(names(3), Plan(mode=Mode.COUNTS)).record(1, Observation.counts(0, 0))
    with pytest.raises(UsageError, match="3 numbers"):
        Search(names(3), Plan(weights=(1.0,)))
    with pytest.raises(UsageError, match="confidence"):
        Plan(confidence=1.0)
