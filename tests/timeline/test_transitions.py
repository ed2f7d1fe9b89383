"""From states to transitions: each change is said once, of the position that made it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from poolbisect.probes.facets import (
    REQ_TO_TOKEN,
    BufferState,
    Condition,
    ContractState,
    PoolKind,
    PoolState,
)
from poolbisect.timeline.transitions import Kind, Transition, transitions

N, D = PoolKind.NORMAL, PoolKind.PD_DECODE
ABSENT = BufferState(Condition.ABSENT)
CRASH = BufferState(Condition.CRASHED, detail="boom")
UNKNOWN = BufferState(Condition.UNTESTABLE)


def rows(count: int, last: int = 8) -> BufferState:
    return BufferState(Condition.SHORT if count <= last else Condition.OK, count, last)


OK, SHORT = rows(9), rows(8)


def state(buffer: BufferState, kind: PoolKind = N, **behaviour: str) -> ContractState:
    return ContractState({kind: PoolState(Condition.OK, "", behaviour, {"table": buffer})})


def pool(condition: Condition, kind: PoolKind = N) -> ContractState:
    return ContractState({kind: PoolState(condition, "why")})


def line(*states: ContractState) -> list[Transition]:
    return transitions(states, lambda p: (p - 1,) if p else (), len(states))


def kinds(*buffers: BufferState) -> list[tuple[int, str]]:
    return [(one.position, one.kind.value) for one in line(*map(state, buffers))]


def test_a_fault_comes_and_goes_and_comes_back() -> None:
    assert kinds(OK, SHORT, SHORT, OK, SHORT, OK) == [
        (1, "introduced"),
        (3, "fixed"),
        (4, "re-introduced"),
        (5, "fixed"),
    ]


def test_a_fault_at_the_older_end_that_comes_back_is_re_introduced() -> None:
    assert kinds(SHORT, OK, SHORT) == [(1, "fixed"), (2, "re-introduced")]


def test_a_buffer_that_arrives_short_is_introduced_and_one_that_arrives_whole_changes() -> None:
    assert kinds(ABSENT, SHORT) == [(1, "introduced")]
    assert kinds(ABSENT, OK) == [(1, "behaviour changed")]
    assert kinds(SHORT, ABSENT) == [(1, "fixed")]
    assert kinds(OK, ABSENT) == [(1, "behaviour changed")]


def test_crashing_is_a_fault_like_being_short() -> None:
    assert kinds(OK, CRASH, OK) == [(1, "introduced"), (2, "fixed")]
    assert kinds(SHORT, CRASH) == [(1, "behaviour changed")]


def test_more_rows_than_needed_are_no_transition_but_a_worse_shortage_is() -> None:
    assert kinds(rows(9), rows(20)) == []
    assert kinds(rows(9, last=8), rows(10, last=9)) == []
    assert kinds(rows(8), rows(7)) == [(1, "behaviour changed")]


def test_untestable_positions_are_passed_over_and_counted() -> None:
    (one,) = line(*map(state, (OK, UNKNOWN, UNKNOWN, SHORT)))
    assert (one.position, one.kind, one.unknown_before) == (3, Kind.INTRODUCED, 2)
    assert one.before == OK
    assert kinds(OK, UNKNOWN, OK) == []
    assert kinds(UNKNOWN, SHORT, OK) == [(2, "fixed")]


def test_a_pool_that_crashes_is_said_once_and_its_buffers_are_as_before() -> None:
    found = line(state(OK), pool(Condition.CRASHED), state(OK))
    assert [(one.position, one.kind, one.buffer, one.aspect) for one in found] == [
        (1, Kind.INTRODUCED, REQ_TO_TOKEN, "pool"),
        (2, Kind.FIXED, REQ_TO_TOKEN, "pool"),
    ]
    during = line(state(OK), pool(Condition.CRASHED), state(SHORT))
    assert (during[-1].buffer, during[-1].kind, during[-1].unknown_before) == (
        "table",
        Kind.INTRODUCED,
        1,
    )


def test_a_pool_that_arrives_is_said_once_unless_a_buffer_of_it_is_short() -> None:
    (one,) = line(pool(Condition.ABSENT), state(OK))
    assert (one.kind, one.aspect) == (Kind.CHANGED, "pool")
    both = line(pool(Condition.ABSENT), state(SHORT))
    assert {(one.kind, one.aspect) for one in both} == {
        (Kind.CHANGED, "pool"),
        (Kind.INTRODUCED, "rows"),
    }


def test_behaviour_that_changes_alike_is_said_once_for_all_pools() -> None:
    def both(order: str, slots: Sequence[str]) -> ContractState:
        return ContractState(
            {
                kind: PoolState(Condition.OK, "", {"slot order": order, "slots": one})
                for kind, one in zip((N, D), slots, strict=True)
            }
        )

    found = line(both("first in", ("0..7", "0..15")), both("last in", ("1..8", "1..16")))
    by_aspect = {(one.aspect, one.pools): (one.before, one.after, one.kind) for one in found}
    assert by_aspect == {
        ("slot order", (N, D)): ("first in", "last in", Kind.CHANGED),
        ("slots", (N,)): ("0..7", "1..8", Kind.CHANGED),
        ("slots", (D,)): ("0..15", "1..16", Kind.CHANGED),
    }


class TestMerges:
    """Positions 0 base, 1 main, 2 branch, 3 their merge; 4 is outside the range."""

    PARENTS = ((), (0,), (0,), (1, 2))

    def found(self, *buffers: BufferState) -> list[tuple[int, str]]:
        states = [state(buffer) for buffer in buffers]
        return [
            (one.position, one.kind.value)
            for one in transitions(states, lambda p: self.PARENTS[p], 4)
        ]

    def test_what_a_branch_brings_is_the_branchs(self) -> None:
        assert self.found(OK, OK, SHORT, SHORT) == [(2, "introduced")]
        assert self.found(SHORT, OK, SHORT, OK) == [(1, "fixed")]

    def test_what_neither_side_has_is_the_merges(self) -> None:
        assert self.found(OK, OK, OK, SHORT) == [(3, "introduced")]
        assert self.found(SHORT, SHORT, SHORT, OK) == [(3, "fixed")]

    def test_a_parent_outside_the_range_is_compared_with(self) -> None:
        states = [state(OK), state(SHORT), state(SHORT)]
        found = transitions(states, lambda p: (2,) if p == 1 else (), 2)
        assert found == []  # position 1 has it from outside, whatever position 0 is


@given(
    st.lists(st.sampled_from([OK, SHORT, ABSENT, CRASH, UNKNOWN, rows(3)]), min_size=1, max_size=12)
)
def test_replaying_the_transitions_gives_the_states_back(buffers: list[BufferState]) -> None:
    found = {one.position: one for one in line(*map(state, buffers))}
    current: BufferState | None = None
    for position, buffer in enumerate(buffers):
        if buffer is UNKNOWN:
            assert position not in found
            continue
        if position in found:
            assert found[position].before == current
            assert found[position].after == buffer
            assert current != buffer
        elif current is not None:
            assert (current.condition, current.missing) == (buffer.condition, buffer.missing)
        current = buffer
