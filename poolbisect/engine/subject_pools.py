"""What the engine asks of the code under test: a request pool, and how long its consumers make
the buffers indexed by its slots. Nothing else differs between two subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from poolbisect.engine.request import Request

HIDDEN_STATES = "req_to_hidden_states_pool"
TOKEN_TABLE = "token_table"


class RequestPool(Protocol):
    """A request pool as upstream's users know it; see poolbisect.pools.slots."""

    size: int
    req_to_token: Tensor
    free_slots: list[int]

    def alloc(self, reqs: Sequence[Request]) -> list[int] | None: ...
    def free(self, req: Request) -> None: ...
    def write(self, indices: tuple[Tensor | int | slice, ...], values: Tensor) -> None: ...
    def available_size(self) -> int: ...
    def clear(self) -> None: ...


class SubjectPools(Protocol):
    """The code under test."""

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool: ...

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        """Rows the subject's code allocates for `buffer`; NotApplicableError if it has none."""
        ...
