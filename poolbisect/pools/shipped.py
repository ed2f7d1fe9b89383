"""The pools this package ships, as code under test: states of upstream's, by family of faults.

`original` has a family's fault and `corrected` lacks it; other states stand for further points in
upstream's history. ShippedState says which commit a state is.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import cast

from poolbisect.errors import NotApplicableError, UsageError
from poolbisect.pools import (
    corrected,
    mamba_by_slot,
    mamba_corrected,
    mamba_decode_max,
    mamba_decode_min,
    mamba_decode_sum,
    mamba_padded,
    mamba_unreserved,
    original,
    unpadded,
)
from poolbisect.pools.interface import HybridRequestPool, RequestPool
from poolbisect.pools.mamba_sizing import MambaSizing


@dataclass(frozen=True, slots=True)
class ShippedState:
    """The pools of one commit of upstream's: without mamba layers and consumers, and with."""

    commit: str
    plain: ModuleType
    hybrid: ModuleType


_PADDED = ShippedState("cb8fbd53fc", original, mamba_padded)
_PADDED_FIXED = ShippedState("1e404afec2", corrected, mamba_corrected)
_BY_SLOT = ShippedState("8a530468fd", unpadded, mamba_by_slot)
_DECODE_MAX = ShippedState("2d2be5d7b2", unpadded, mamba_decode_max)
_DECODE_MIN = ShippedState("eec70286ec", unpadded, mamba_decode_min)
_DECODE_SUM = ShippedState("8541b1118d", unpadded, mamba_decode_sum)
_UNRESERVED = ShippedState("868403f642", unpadded, mamba_unreserved)

FAMILIES: dict[str, dict[str, ShippedState]] = {
    "padding": {"original": _PADDED, "corrected": _PADDED_FIXED, "unpadded": _BY_SLOT},
    "mamba": {
        "original": _DECODE_MAX,
        "corrected": _BY_SLOT,
        "padded": _PADDED,
        "unreserved": _UNRESERVED,
    },
    "pd-mamba": {"original": _DECODE_MIN, "corrected": _DECODE_MAX, "added": _DECODE_SUM},
}

STATES: dict[str, ModuleType] = {name: state.plain for name, state in FAMILIES["padding"].items()}


class ShippedPools:
    """One state of a family; poolbisect.pools.interface states the protocol."""

    def __init__(self, state: str, family: str = "padding") -> None:
        if family not in FAMILIES:
            raise UsageError(f"there is no family {family!r} of pools; say {', '.join(FAMILIES)}")
        if state not in FAMILIES[family]:
            raise UsageError(
                f"the family {family} of pools has no state {state!r}; "
                f"say {', '.join(FAMILIES[family])}"
            )
        self.state = state
        self.family = family
        self._of = FAMILIES[family][state]

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool:
        if pre_alloc_size is None:
            pool = self._of.plain.ReqToTokenPool(size, max_context_len, device)
        else:
            pool = self._of.plain.DecodeReqToTokenPool(
                size, max_context_len, device, pre_alloc_size
            )
        return cast(RequestPool, pool)

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
        mamba = MambaSizing(mamba_size, extra_buffer, overlap)
        if pre_alloc_size is None:
            pool = self._of.hybrid.HybridReqToTokenPool(size, max_context_len, device, mamba=mamba)
        else:
            pool = self._of.hybrid.HybridMambaDecodeReqToTokenPool(
                size, max_context_len, device, pre_alloc_size, mamba=mamba
            )
        return cast(HybridRequestPool, pool)

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        rows = getattr(self._of.plain, f"{buffer}_rows", None)
        if rows is None:
            raise NotApplicableError(f"{self.state}: the shipped pools have no buffer {buffer}")
        return int(rows(pool))
