"""Request pools and their consumers as of SGLang #24243: a padding row, and a stale `size`."""

from __future__ import annotations

from poolbisect.pools.slots import SlotPool


class ReqToTokenPool(SlotPool):
    """Slots 1..size over size + 1 rows; row 0 is padding."""

    def __init__(self, size: int, max_context_len: int, device: str) -> None:
        self.size = size
        super().__init__(size + 1, range(1, size + 1), max_context_len, device)

    def clear(self) -> None:
        self.free_slots = list(range(1, self.size + 1))


class DecodeReqToTokenPool(SlotPool):
    """The pool of a PD decode instance: `pre_alloc_size` more slots than may run at once."""

    most_reusing = 1

    def __init__(self, size: int, max_context_len: int, device: str, pre_alloc_size: int) -> None:
        self.size = size
        self.pre_alloc_size = pre_alloc_size
        rows = size + pre_alloc_size + 1
        super().__init__(rows, range(1, rows), max_context_len, device)

    def clear(self) -> None:
        self.free_slots = list(range(1, self.size + self.pre_alloc_size + 1))


def req_to_hidden_states_pool_rows(pool: SlotPool) -> int:
    return pool.size


def token_table_rows(pool: SlotPool) -> int:
    return pool.size
