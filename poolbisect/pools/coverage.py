"""When a pool first hands out its last slot: found by driving the pool itself."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from poolbisect.pools.interface import RequestPool


@dataclass(slots=True)
class _Holder:
    """A request that does nothing but hold a slot."""

    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    is_chunked: int = 0
    inflight_middle_chunks: int = 0


@dataclass(frozen=True, slots=True)
class LastSlot:
    """The largest slot of a pool, and the number of the request that is first to get it.

    `first_request` counts from 1; None if none of the requests asked about gets it.
    """

    slot: int
    first_request: int | None


def last_slot_use(pool: RequestPool, in_flight: int, requests: int) -> LastSlot:
    """Serve `requests` requests, at most `in_flight` at once, oldest freed first, on a new pool.

    First in, first out, slot S is first used once S requests have been served; last in, first out,
    by the first request. Nothing is run but alloc and free.
    """
    last = max(pool.free_slots)
    held: deque[_Holder] = deque()
    for number in range(1, requests + 1):
        if len(held) >= in_flight:
            pool.free(held.popleft())
        request = _Holder()
        slots = pool.alloc([request])
        if slots is None:
            break
        if slots[0] == last:
            return LastSlot(last, number)
        held.append(request)
    return LastSlot(last, None)
