"""What is asked of the code under test: a request pool, and how long its consumers make the
buffers indexed by its slots. Nothing else differs between two subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

HIDDEN_STATES = "req_to_hidden_states_pool"
TOKEN_TABLE = "token_table"
MAMBA_MAPPING = "req_index_to_mamba_index_mapping"
PING_PONG_MAPPING = "req_index_to_mamba_ping_pong_track_buffer_mapping"
MAMBA_MAPPINGS = (MAMBA_MAPPING, PING_PONG_MAPPING)


class SlotHolder(Protocol):
    """What a pool needs to know of a request."""

    req_pool_idx: int | None
    kv_committed_len: int
    is_chunked: int


class MambaHolder(SlotHolder, Protocol):
    """What a hybrid pool needs to know of a request; it sets all three fields.

    Retracting a request resets them to None: the pool does so for the first only.
    """

    mamba_pool_idx: int | None
    mamba_ping_pong_track_buffer: list[int] | None
    mamba_next_track_idx: int | None


class SlotRows(Protocol):
    """Memory of one row per slot, as pools use it: a tensor, or one with its bounds taken off.

    An index is an int, a list of ints or a tensor of them. What an index past the end does is the
    memory's business: a tensor raises IndexError, `poolbisect.pools.unchecked` reaches further.
    """

    @property
    def shape(self) -> torch.Size: ...
    @property
    def dtype(self) -> torch.dtype: ...
    def __getitem__(self, index: Any, /) -> Tensor: ...
    def __setitem__(self, index: Any, values: Any, /) -> None: ...
    def zero_(self) -> Any: ...


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


class MambaSlots(Protocol):
    """The mamba pool of a hybrid pool: state tensors indexed by its slots need `rows` rows."""

    @property
    def size(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def free_slots(self) -> list[int]: ...
    def available_size(self) -> int: ...


class HybridRequestPool(RequestPool, Protocol):
    """A request pool with a mamba pool beside it; poolbisect.pools.mamba_mapping says what it does.

    Both mappings may be replaced by memory of the same shape and type right after construction;
    the pool reads and writes them through it. The second exists with the extra buffer only.
    A finished request gives back its mamba slots first, then its request slot.
    """

    req_index_to_mamba_index_mapping: SlotRows
    req_index_to_mamba_ping_pong_track_buffer_mapping: SlotRows

    @property
    def mamba_pool(self) -> MambaSlots: ...
    def free_mamba_cache(self, req: Any) -> None: ...
    def get_mamba_indices(self, req_indices: Tensor) -> Tensor: ...


class SubjectPools(Protocol):
    """The code under test."""

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool: ...

    def make_hybrid_pool(
        self,
        size: int,
        max_context_len: int,
        device: str,
        *,
        mamba_size: int,
        pre_alloc_size: int | None = None,
        extra_buffer: bool = False,
        overlap: bool = True,
    ) -> HybridRequestPool:
        """A request pool with `mamba_size` mamba slots; the PD-decode one with a pre-alloc size.

        `extra_buffer` adds the ping-pong mapping, as wide as `overlap` scheduling needs it.
        """
        ...

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        """Rows the subject's code allocates for `buffer`; NotApplicableError if it has none."""
        ...
