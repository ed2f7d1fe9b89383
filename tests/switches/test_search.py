"""The search over planted faults: always found, few launches, honest where it cannot be."""

from __future__ import annotations

from itertools import combinations
from math import ceil, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbisect.evidence.verdict import Verdict
from poolbisect.switches.finding import Answer
from poolbisect.switches.plan import Plan
from tests.switches.planted import PlantedOracle, find, planted

EIGHT = [f"switch-{number}" for number in range(1, 9)]


@pytest.mark.parametrize("culprit", EIGHT)
def test_a_single_flag_of_eight_takes_at_most_eight_launches(culprit: str) -> None:
    oracle = PlantedOracle(planted({culprit}))
    found, _ = find(EIGHT, oracle)
    assert found.answer is Answer.CULPRIT
    assert found.culprit == (culprit,)
    assert len(oracle.launches) <= 8  # 2 ends, 3 halvings, alone, again, all on but it


@pytest.mark.parametrize("culprits", list(combinations(EIGHT, 2)), ids="+".join)
def test_a_pair_of_eight_takes_few_launches(culprits: tuple[str, str]) -> None:
    oracle = PlantedOracle(planted(set(culprits)))
    found, _ = find(EIGHT, oracle)
    assert found.culprit == culprits
    assert len(oracle.launches) <= 14


@given(st.data())
@settings(max_examples=150)
def test_any_one_to_three_of_up_to_ten_are_found_within_the_bound(data: st.DataObject) -> None:
    order = [f"s{number}" for number in range(data.draw(st.integers(1, 10)))]
    size = data.draw(st.integers(1, min(3, len(order))))
    culprits = set(data.draw(st.permutations(order))[:size])
    oracle = PlantedOracle(planted(culprits))
    found, _ = find(order, oracle)
    assert set(found.culprit) == culprits
    assert found.answer.exit_code == 0
    halvings = ceil(log2(len(order))) if len(order) > 1 else 0
    assert len(oracle.launches) <= 2 + size * (halvings + 1) + 1 + 2 * size
    twice = [on for on in set(oracle.launches) if oracle.launches.count(on) > 1]
    assert twice == [frozenset(culprits)]  # only what is confirmed by a second run


@given(st.data())
@settings(max_examples=150)
def test_whatever_the_rule_a_culprit_is_bad_twice_and_good_without_any_member(
    data: st.DataObject,
) -> None:
    """Also where switches cancel each other or refuse each other: what is claimed was seen."""
    order = [f"s{number}" for number in range(data.draw(st.integers(1, 5)))]
    sets = [frozenset(c) for r in range(len(order) + 1) for c in combinations(order, r)]
    verdicts = st.sampled_from([Verdict.GOOD, Verdict.BAD, Verdict.UNTESTABLE])
    rule = {on: data.draw(verdicts) for on in sets}
    rule[frozenset()], rule[frozenset(order)] = Verdict.GOOD, Verdict.BAD
    oracle = PlantedOracle(rule.__getitem__)
    found, _ = find(order, oracle)
    whole = frozenset((*found.certain, *found.suspects))
    assert oracle.launches.count(whole) == 2
    assert rule[whole] is Verdict.BAD
    for name in found.certain:
        assert whole - {name} in oracle.launches
        assert rule[whole - {name}] is Verdict.GOOD
    for name in found.suspects:
        assert rule[whole - {name}] is Verdict.UNTESTABLE
    assert (found.answer is Answer.CULPRIT) == (not found.suspects)
    assert found.culprit == (() if found.suspects else found.certain)
    for other in found.others:
        assert rule[frozenset(other)] is Verdict.BAD


@given(st.data())
@settings(max_examples=100)
def test_refused_combinations_are_never_blamed(data: st.DataObject) -> None:
    """Some sets are refused; what is called certain is planted, what is planted is never missed."""
    order = [f"s{number}" for number in range(data.draw(st.integers(2, 8)))]
    culprits = set(data.draw(st.permutations(order))[: data.draw(st.integers(1, 2))])
    refused = data.draw(
        st.sets(st.frozensets(st.sampled_from(order), min_size=1, max_size=len(order) - 1))
    )
    rule = planted(culprits)
    oracle = PlantedOracle(lambda on: Verdict.UNTESTABLE if on in refused else rule(on))
    found, _ = find(order, oracle)
    assert set(found.certain) <= culprits <= {*found.certain, *found.suspects}


def test_a_switch_that_needs_another_is_a_range() -> None:
    """Draft steps without an algorithm are refused: what draft steps alone do cannot be told."""

    def rule(on: frozenset[str]) -> Verdict:
        if "steps" in on and "algorithm" not in on:
            return Verdict.UNTESTABLE
        return Verdict.BAD if "steps" in on else Verdict.GOOD

    order = ["a", "steps", "b", "algorithm", "c"]
    found, _ = find(order, PlantedOracle(rule))
    assert found.answer is Answer.SUSPECT_RANGE
    assert found.answer.exit_code == 4
    assert found.certain == ("steps",)
    assert found.suspects == ("algorithm",)
    assert "refused together" in found.reason


def test_all_off_bad_is_said_before_anything_else_is_launched() -> None:
    oracle = PlantedOracle(lambda on: Verdict.BAD)
    found, _ = find(EIGHT, oracle)
    assert (found.answer, found.answer.exit_code) == (Answer.ALL_OFF_BAD, 2)
    assert len(oracle.launches) == 1
    assert "none of these switches" in found.reason


def test_all_on_good_is_said_after_two_launches() -> None:
    oracle = PlantedOracle(lambda on: Verdict.GOOD)
    found, _ = find(EIGHT, oracle)
    assert (found.answer, found.answer.exit_code) == (Answer.ALL_ON_GOOD, 2)
    assert len(oracle.launches) == 2


def test_a_fault_that_another_switch_hides_is_no_difference_between_the_ends() -> None:
    rule = PlantedOracle(lambda on: Verdict.BAD if "a" in on and "b" not in on else Verdict.GOOD)
    found, _ = find(["a", "b", "c"], rule)
    assert found.answer is Answer.ALL_ON_GOOD


def test_a_switch_seen_to_hide_the_fault_is_named() -> None:
    """a is bad, a with b is good, and c is bad whatever else is on."""

    def rule(on: frozenset[str]) -> Verdict:
        bad = "c" in on or ("a" in on and "b" not in on)
        return Verdict.BAD if bad else Verdict.GOOD

    found, _ = find(["a", "b", "c"], PlantedOracle(rule))
    assert found.answer is Answer.CULPRIT
    hidings = [line for line in found.remarks if "not every fault shows" in line]
    assert rule(frozenset(found.culprit)) is Verdict.BAD
    if found.culprit == ("a",):
        assert hidings


def test_two_independent_flags_are_both_named() -> None:
    found, _ = find(EIGHT, PlantedOracle(planted({EIGHT[1]}, {EIGHT[6]})))
    assert {found.culprit, *found.others} == {(EIGHT[1],), (EIGHT[6],)}
    assert any("stays bad" in line for line in found.remarks)


def test_an_end_that_is_refused_is_not_a_verdict() -> None:
    everything = frozenset(EIGHT)
    oracle = PlantedOracle(lambda on: Verdict.UNTESTABLE if on == everything else Verdict.GOOD)
    found, _ = find(EIGHT, oracle)
    assert (found.answer, found.answer.exit_code) == (Answer.UNTESTABLE, 4)
    assert "refused together" in found.reason


def test_a_culprit_that_is_good_the_second_time_is_not_named() -> None:
    seen: list[frozenset[str]] = []

    def rule(on: frozenset[str]) -> Verdict:
        seen.append(on)
        return Verdict.GOOD if seen.count(on) == 2 else planted({"c"})(on)

    found, _ = find(["a", "b", "c", "d"], PlantedOracle(rule))
    assert found.answer is Answer.FLAKY
    assert found.culprit == ()
    assert found.suspects == ("c",)


@pytest.mark.parametrize(("noise", "lead"), [(0.0, 1), (0.01, 1), (0.1, 3), (0.2, 4), (0.3, 6)])
def test_the_lead_is_walds(noise: float, lead: int) -> None:
    assert Plan(noise=noise).lead == lead


@given(st.data())
@settings(max_examples=60)
def test_noisy_verdicts_are_repeated_until_they_lead(data: st.DataObject) -> None:
    """Every launch of one configuration but the majority may be wrong, in any order."""
    plan = Plan(noise=0.1)
    wrong = data.draw(st.lists(st.booleans(), min_size=200, max_size=200))
    counts: dict[frozenset[str], list[bool]] = {}

    def rule(on: frozenset[str]) -> Verdict:
        answers = counts.setdefault(on, [])
        # Never so many wrong ones that they could lead by three: one after another at most.
        lie = wrong[(len(on) * 7 + len(answers)) % 200] and not (answers and answers[-1])
        answers.append(lie)
        bad = ("b" in on) != lie
        return Verdict.BAD if bad else Verdict.GOOD

    oracle = PlantedOracle(rule)
    found, referee = find(["a", "b", "c"], oracle, plan)
    for decision in referee.decisions.values():
        if decision.verdict in (Verdict.GOOD, Verdict.BAD):
            assert decision.verdict is (Verdict.BAD if "b" in decision.on else Verdict.GOOD)
    assert found.culprit in ((), ("b",))
