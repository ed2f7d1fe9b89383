"""What is asked of the code under test: a request pool, and how long its consumers make the
buffers indexed by its slots. Nothing else differs between two subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

HIDDEN_STATES = "req_to_hidden_states_pool"
TOKEN_TABLE = "token_table"


class SlotHolder(Protocol):
    """What a pool needs to know of a request."""

    req_pool_idx: int | None
    kv_committed_len: int
    is_chunked: int


class RequestPool(Protocol):
    """A request pool as upstream's users know it; poolbisect.pools.slots says what each does."""

    req_to_token: Tensor

    @property
    def size(self) -> int: ...
    @property
    def free_slots(self) -> list[int]: ...
    def alloc(self, reqs: Sequence[Any]) -> list[int] | None: ...
    def free(self, req: Any) -> None: ...
    def write(self, indices: Any, values: Tensor) -> None: ...
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
