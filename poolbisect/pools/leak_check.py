"""The idle leak check: when nothing runs, every slot must be free or held by a session."""

from __future__ import annotations

from poolbisect.pools.interface import RequestPool


def leaked_slots(pool: RequestPool, held_by_sessions: int = 0) -> int:
    """Slots that are neither free nor held, by the pool's own `size`; 0 when the books balance.

    It counts slots, never rows: a buffer one row short leaves the books balanced, so this check
    cannot see the padding regression. Had the padding fix added 1 to `size` as well, it would
    report one leaked slot for ever.
    """
    expected = pool.size + getattr(pool, "pre_alloc_size", 0)
    return expected - pool.available_size() - held_by_sessions
