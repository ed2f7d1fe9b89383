"""Hybrid pools as of SGLang #22462: PD decode raises the mamba size to what its slots need."""

from __future__ import annotations

from poolbisect.pools.mamba_mapping import HybridDecodeSlots, HybridSlots
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.unpadded import DecodeReqToTokenPool, ReqToTokenPool


class HybridReqToTokenPool(HybridSlots, ReqToTokenPool):
    """Mappings with a row for every mamba slot."""

    def mapping_rows(self) -> int:
        return self.mamba_pool.size


class HybridMambaDecodeReqToTokenPool(HybridDecodeSlots, DecodeReqToTokenPool):
    """The same on a PD decode instance."""

    def effective_mamba_size(self, mamba: MambaSizing) -> int:
        slots = self.size + self.pre_alloc_size
        return max(mamba.size, slots * mamba.slots_per_request)

    def mapping_rows(self) -> int:
        return self.mamba_pool.size
