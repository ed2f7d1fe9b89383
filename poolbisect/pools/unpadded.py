"""Request pools and their consumers before SGLang #24243: no padding row, slots from 0."""

from __future__ import annotations

from poolbisect.pools.slots import SlotPool


class ReqToTokenPool(SlotPool):
    """Slots 0..size-1 over size rows."""

    def __init__(self, size: int, max_context_len: int, device: str) -> None:
        self.size = size
        super().__init__(size, range(size), max_context_len, device)

    def clear(self) -> None:
        self.free_slots = list(range(self.size))


class DecodeReqToTokenPool(SlotPool):
    """The pool of a PD decode instance: `pre_alloc_size` more slots than may run at once."""

    most_reusing = 1

    def __init__(self, size: int, max_context_len: int, device: str, pre_alloc_size: int) -> None:
        self.size = size
        self.pre_alloc_size = pre_alloc_size
        rows = size + pre_alloc_size
        super().__init__(rows, range(rows), max_context_len, device)

    def clear(self) -> None:
        self.free_slots = list(range(self.size + self.pre_alloc_size))


def req_to_hidden_states_pool_rows(pool: SlotPool) -> int:
    return pool.size


def token_table_rows(pool: SlotPool) -> int:
    return pool.size
