"""Hybrid pools as of SGLang #10912: mappings as long as the mamba pool, mamba slots from 0."""

from __future__ import annotations

from poolbisect.pools.interface import MambaHolder
from poolbisect.pools.mamba_mapping import HybridDecodeSlots, HybridSlots
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.unpadded import DecodeReqToTokenPool, ReqToTokenPool


class HybridReqToTokenPool(HybridSlots, ReqToTokenPool):
    """Mamba slots 0..size-1; freeing a request frees what its row of the mapping says."""

    first_mamba_slot = 0

    def mapping_rows(self) -> int:
        return self.mamba_pool.size

    def mamba_slot_of(self, req: MambaHolder) -> int:
        return int(self.req_index_to_mamba_index_mapping[req.req_pool_idx])


class HybridMambaDecodeReqToTokenPool(HybridDecodeSlots, DecodeReqToTokenPool):
    """As many mamba slots as request slots, whatever was asked for."""

    first_mamba_slot = 0

    def effective_mamba_size(self, mamba: MambaSizing) -> int:
        return self.size + self.pre_alloc_size

    def mapping_rows(self) -> int:
        return self.mamba_pool.size

    def mamba_slot_of(self, req: MambaHolder) -> int:
        return int(self.req_index_to_mamba_index_mapping[req.req_pool_idx])
