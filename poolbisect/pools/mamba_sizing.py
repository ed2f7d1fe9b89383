"""How many requests and mamba slots a rank gets from a server's flags, as SGLang computes it.

Every function follows upstream's `model_runner_kv_cache_mixin.py` as of #24244 (2026-05-01).
"""

from __future__ import annotations

from dataclasses import dataclass

# A radix cache keeps the state of finished prefixes beside that of running requests.
_SLOTS_PER_REQUEST_WITH_RADIX_CACHE = 3
_LARGEST_DEFAULT_PRE_ALLOC = 32


@dataclass(frozen=True, slots=True)
class MambaSizing:
    """What the hybrid pools of a rank are made of.

    `size` is the rank's number of mamba slots; with `extra_buffer` every request also holds
    ping-pong slots, two with overlap scheduling, else one.
    """

    size: int
    extra_buffer: bool = False
    overlap: bool = True

    @property
    def ping_pong_width(self) -> int:
        """Columns of the ping-pong mapping."""
        return 2 if self.overlap else 1

    @property
    def slots_per_request(self) -> int:
        """Mamba slots that one running request holds."""
        return 1 + (self.ping_pong_width if self.extra_buffer else 0)


def mamba_ratio(*, radix_cache: bool, extra_buffer: bool = False, overlap: bool = True) -> int:
    """Mamba slots a server sets aside for each running request.

    1 without a radix cache, which includes every PD decode instance; with one, 3 and the request's
    ping-pong slots.
    """
    if not radix_cache:
        return 1
    return _SLOTS_PER_REQUEST_WITH_RADIX_CACHE + (
        MambaSizing(0, extra_buffer, overlap).slots_per_request - 1
    )


def mamba_size_per_rank(
    max_mamba_cache_size: int | None, max_running_requests: int, dp_size: int
) -> int:
    """Mamba slots of one rank under DP attention; remainders of the division are lost.

    Without `--max-mamba-cache-size` and without a radix cache there are as many as requests.
    """
    total = max_running_requests if max_mamba_cache_size is None else max_mamba_cache_size
    return total // dp_size


def running_requests_per_rank(
    max_running_requests: int, dp_size: int, mamba_size: int, ratio: int
) -> int:
    """Request slots of one rank of a hybrid model: its share, capped by `mamba_size // ratio`.

    The cap hides mappings as long as the mamba pool on colocated servers: it keeps request slots
    below the number of mamba slots.
    """
    return min(max_running_requests // dp_size, mamba_size // ratio)


def pre_alloc_size(request_slots: int, configured: int = 0) -> int:
    """Request slots that a PD decode instance adds for requests whose KV is on its way.

    Twice its request slots up to 32 of them; beyond, what the environment configures.
    """
    return 2 * request_slots if request_slots <= _LARGEST_DEFAULT_PRE_ALLOC else configured
