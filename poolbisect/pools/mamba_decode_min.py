"""Hybrid pools as of SGLang #20858: PD decode caps the mamba size at its request slots."""

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
        return min(mamba.size, self.size + self.pre_alloc_size)

    def mapping_rows(self) -> int:
        return self.mamba_pool.size
