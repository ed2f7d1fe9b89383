"""Configuration of the miniature engine, in upstream's own flag names where upstream has them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from poolbisect.errors import UsageError
from poolbisect.pools.mamba_sizing import MambaSizing


class PaddedRows(StrEnum):
    """What the request slots of a graph's padded rows hold: an earlier batch's, or 0."""

    STALE = "stale"
    ZEROED = "zeroed"


class MappingAccess(StrEnum):
    """How a pool reaches its mappings: as torch does, with bounds, or as a kernel, without."""

    CHECKED = "checked"
    UNCHECKED = "unchecked"


class Behind(StrEnum):
    """What lies behind `req_to_hidden_states_pool` in device memory."""

    UPSTREAM_ORDER = "upstream-order"
    FUTURE_VERIFIED_IDS = "future-verified-ids"
    FUTURE_SEQ_LENS = "future-seq-lens"
    FUTURE_DRAFTS = "future-drafts"
    VERIFY_METADATA = "verify-metadata"
    KV_CACHE = "kv-cache"
    SLACK = "slack"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """One server's configuration; sizes in requests or tokens. UsageError when inconsistent.

    `concurrency` is the client's: how many requests it keeps in flight, None for all.
    """

    max_running_requests: int = 128
    dp_size: int = 2
    page_size: int = 64
    context_length: int = 192
    cuda_graph_max_bs: int = 64
    speculative_num_steps: int = 3
    speculative_eagle_topk: int = 1
    speculative_num_draft_tokens: int = 4
    disable_overlap_schedule: bool = False
    max_mamba_cache_size: int | None = None
    mamba_extra_buffer: bool = False
    pre_alloc_size: int | None = None
    mapping_access: MappingAccess = MappingAccess.UNCHECKED
    padded_writes: bool = False
    padded_rows: PaddedRows = PaddedRows.STALE
    behind_hidden_states: Behind = Behind.UPSTREAM_ORDER
    concurrency: int | None = None
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in (
            "max_running_requests",
            "dp_size",
            "page_size",
            "context_length",
            "cuda_graph_max_bs",
        ):
            if getattr(self, name) < 1:
                raise UsageError(f"{_flag(name)} must be at least 1, not {getattr(self, name)}")
        if self.slots_per_rank < 1:
            raise UsageError(
                f"--max-running-requests {self.max_running_requests} leaves no request slot "
                f"for each of {self.dp_size} DP ranks"
            )
        if self.speculative_eagle_topk != 1:
            raise UsageError(
                f"--speculative-eagle-topk {self.speculative_eagle_topk}: "
                "multi-layer EAGLE is served with top-k 1 only"
            )
        if self.speculative_num_steps not in (0, 2, 3):
            raise UsageError(
                f"--speculative-num-steps {self.speculative_num_steps}: "
                "0 (no speculation), 2 or 3, as many as the model has MTP layers"
            )
        if self.speculative_num_draft_tokens != self.speculative_num_steps + 1:
            raise UsageError(
                f"--speculative-num-draft-tokens {self.speculative_num_draft_tokens} must be "
                f"--speculative-num-steps + 1 = {self.speculative_num_steps + 1} with top-k 1"
            )
        if self.concurrency is not None and self.concurrency < self.dp_size:
            raise UsageError(
                f"concurrency {self.concurrency} keeps no request in flight for each of "
                f"{self.dp_size} DP ranks"
            )
        if self.max_mamba_cache_size is not None and self.max_mamba_cache_size < self.dp_size:
            raise UsageError(
                f"--max-mamba-cache-size {self.max_mamba_cache_size} leaves no mamba slot "
                f"for each of {self.dp_size} DP ranks"
            )
        if self.max_mamba_cache_size is not None:
            held = MambaSizing(
                0, self.mamba_extra_buffer, not self.disable_overlap_schedule
            ).slots_per_request
            if self.mamba_slots_per_rank < held:
                raise UsageError(
                    f"--max-mamba-cache-size {self.max_mamba_cache_size} leaves "
                    f"{self.mamba_slots_per_rank} mamba slots a rank, and one request holds {held}"
                )
        if self.pre_alloc_size is not None and self.pre_alloc_size < 0:
            raise UsageError(f"pre-alloc-size must not be negative, not {self.pre_alloc_size}")
        if self.temperature < 0:
            raise UsageError(f"temperature must not be negative, not {self.temperature}")

    @property
    def slots_per_rank(self) -> int:
        """Request slots of one DP rank, as upstream divides them."""
        return self.max_running_requests // self.dp_size

    @property
    def mamba_slots_per_rank(self) -> int:
        """Mamba slots of one DP rank; 0 for a model without mamba layers."""
        return (self.max_mamba_cache_size or 0) // self.dp_size

    @property
    def speculative(self) -> bool:
        return self.speculative_num_steps > 0

    @property
    def tokens_per_step(self) -> int:
        """Tokens a request verifies in one decode step."""
        return self.speculative_num_draft_tokens


def graph_buckets(max_bs: int) -> tuple[int, ...]:
    """Batch sizes a graph is captured for: 1, 2, 4, then every 8 up to `max_bs`."""
    sizes = {size for size in (1, 2, 4) if size <= max_bs}
    return tuple(sorted(sizes | set(range(8, max_bs + 1, 8)) | {max_bs}))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
