"""Hybrid pools as of SGLang #19002: PD decode adds its pre-allocation to the mamba size."""

from __future__ import annotations

from poolbisect.pools.mamba_mapping import HybridDecodeSlots, HybridSlots
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.unpadded import DecodeReqToTokenPool, ReqToTokenPool


class HybridReqToTokenPool(HybridSlots, ReqToTokenPool):
    """Mappings with a row for every mamba slot."""

    most_reusing = 1

    def mapping_rows(self) -> int:
        return self.mamba_pool.size


class HybridMambaDecodeReqToTokenPool(HybridDecodeSlots, DecodeReqToTokenPool):
    """The same on a PD decode instance."""

    most_reusing = 1

    def effective_mamba_size(self, mamba: MambaSizing) -> int:
        return mamba.size + self.pre_alloc_size

    def mapping_rows(self) -> int:
        return self.mamba_pool.size
