"""Request pools and their consumers as of SGLang #24439: consumers read the tensor's real shape."""

from __future__ import annotations

from poolbisect.pools.slots import SlotPool


class ReqToTokenPool(SlotPool):
    """Slots 1..size over size + 1 rows; row 0 is padding."""

    def __init__(self, size: int, max_context_len: int, device: str) -> None:
        self.size = size
        self._alloc_size = size + 1
        super().__init__(self._alloc_size, range(1, self._alloc_size), max_context_len, device)

    def clear(self) -> None:
        self.free_slots = list(range(1, self._alloc_size))


class DecodeReqToTokenPool(SlotPool):
    """The pool of a PD decode instance: `pre_alloc_size` more slots than may run at once."""

    most_reusing = 1

    def __init__(self, size: int, max_context_len: int, device: str, pre_alloc_size: int) -> None:
        self.size = size
        self.pre_alloc_size = pre_alloc_size
        self._alloc_size = size + pre_alloc_size + 1
        super().__init__(self._alloc_size, range(1, self._alloc_size), max_context_len, device)

    def clear(self) -> None:
        self.free_slots = list(range(1, self._alloc_size))


def req_to_hidden_states_pool_rows(pool: SlotPool) -> int:
    return pool.req_to_token.shape[0]


def token_table_rows(pool: SlotPool) -> int:
    return pool.req_to_token.shape[0]
