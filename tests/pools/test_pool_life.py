"""Any life of a pool: slots stay unique and conserved, and the fault stays invisible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from poolbisect.engine.request import Request
from poolbisect.pools.interface import RequestPool
from poolbisect.pools.shipped import STATES, ShippedPools


def new_requests(count: int) -> list[Request]:
    return [Request(str(number), [], 1, 0) for number in range(count)]


def make_pool(state: str, size: int, pre_alloc: int | None) -> RequestPool:
    return ShippedPools(state).make_pool(size, 4, "cpu", pre_alloc)


class PoolMachine(RuleBasedStateMachine):
    """Any life of a pool keeps slots unique, conserved and out of the padding row."""

    @initialize(
        state=st.sampled_from(sorted(STATES)),
        size=st.integers(1, 6),
        pre_alloc=st.none() | st.integers(0, 3),
    )
    def start(self, state: str, size: int, pre_alloc: int | None) -> None:
        self.pool = make_pool(state, size, pre_alloc)
        self.every_slot = set(self.pool.free_slots)
        self.held: list[Request] = []

    @rule(count=st.integers(0, 8))
    def alloc(self, count: int) -> None:
        expected = self.pool.free_slots[:count]
        requests = new_requests(count)
        slots = self.pool.alloc(requests)
        if len(expected) < count:
            assert slots is None
            return
        assert slots == expected == [request.req_pool_idx for request in requests]
        self.held += requests

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        request = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        slot = request.req_pool_idx
        self.pool.free(request)
        assert self.pool.free_slots[-1] == slot

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def keep(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.held))
        request.is_chunked = 1
        assert self.pool.alloc([request]) == [request.req_pool_idx]

    @rule()
    def clear(self) -> None:
        self.pool.clear()
        self.held = []

    @invariant()
    def every_slot_is_free_or_held_once(self) -> None:
        held = [request.req_pool_idx for request in self.held]
        together = [*held, *self.pool.free_slots]
        assert len(together) == len(self.every_slot)
        assert set(together) == self.every_slot
        assert max(self.every_slot) < self.pool.req_to_token.shape[0]


TestPoolMachine = PoolMachine.TestCase


@given(
    size=st.integers(1, 6),
    pre_alloc=st.none() | st.integers(0, 3),
    life=st.lists(st.tuples(st.sampled_from(["alloc", "free", "clear"]), st.integers(0, 7))),
)
def test_original_and_corrected_pools_behave_alike(
    size: int, pre_alloc: int | None, life: list[tuple[str, int]]
) -> None:
    """Looking at the pool alone cannot show the fault: only its consumers' rows differ."""

    def play(state: str) -> list[object]:
        pool = make_pool(state, size, pre_alloc)
        held: list[Request] = []
        seen: list[object] = []
        for action, number in life:
            if action == "alloc":
                requests = new_requests(number)
                seen.append(pool.alloc(requests))
                held += [request for request in requests if request.req_pool_idx is not None]
            elif action == "free" and held:
                pool.free(held.pop(number % len(held)))
            elif action == "clear":
                pool.clear()
                held = []
            seen.append((list(pool.free_slots), pool.available_size(), pool.size))
        return [*seen, tuple(pool.req_to_token.shape)]

    assert play("original") == play("corrected")
