"""The pools this package ships, as code under test: `original`, `corrected` and `unpadded`."""

from __future__ import annotations

from types import ModuleType
from typing import cast

from poolbisect.errors import NotApplicableError
from poolbisect.pools import corrected, original, unpadded
from poolbisect.pools.interface import RequestPool

STATES: dict[str, ModuleType] = {
    "original": original,
    "corrected": corrected,
    "unpadded": unpadded,
}


class ShippedPools:
    """One state of the pools; poolbisect.pools.interface states the protocol."""

    def __init__(self, state: str) -> None:
        self.state = state
        self._module = STATES[state]

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool:
        if pre_alloc_size is None:
            pool = self._module.ReqToTokenPool(size, max_context_len, device)
        else:
            pool = self._module.DecodeReqToTokenPool(size, max_context_len, device, pre_alloc_size)
        return cast(RequestPool, pool)

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        rows = getattr(self._module, f"{buffer}_rows", None)
        if rows is None:
            raise NotApplicableError(f"{self.state}: the shipped pools have no buffer {buffer}")
        return int(rows(pool))
