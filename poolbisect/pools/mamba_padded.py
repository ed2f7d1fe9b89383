"""Hybrid pools as of SGLang #24243: on request pools with a padding row."""

from __future__ import annotations

from poolbisect.pools.mamba_mapping import HybridDecodeSlots, HybridSlots
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.original import DecodeReqToTokenPool, ReqToTokenPool


class HybridReqToTokenPool(HybridSlots, ReqToTokenPool):
    """Mappings with a row for every request slot."""

    def mapping_rows(self) -> int:
        return self.req_to_token.shape[0]


class HybridMambaDecodeReqToTokenPool(HybridDecodeSlots, DecodeReqToTokenPool):
    """The same on a PD decode instance."""

    def effective_mamba_size(self, mamba: MambaSizing) -> int:
        slots = self.size + self.pre_alloc_size
        return max(mamba.size, slots * mamba.slots_per_request)

    def mapping_rows(self) -> int:
        return self.req_to_token.shape[0]
