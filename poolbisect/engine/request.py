"""A request: what is asked, what has been answered, and what it holds meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"


@dataclass(slots=True, eq=False)
class Request:
    """One request. `reserved` is the largest number of tokens its KV cache may hold by now."""

    id: str
    prompt: list[int]
    max_new_tokens: int
    stop_token: int
    noise_seed: int = 0
    output: list[int] = field(default_factory=list)
    finished: Finish | None = None
    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    is_chunked: int = 0
    inflight_middle_chunks: int = 0
    mamba_pool_idx: int | None = None
    mamba_ping_pong_track_buffer: list[int] | None = None
    mamba_next_track_idx: int | None = None
    pages: list[int] = field(default_factory=list)
    reserved: int = 0
    slot_held: int | None = None
    verify_steps: int = 0
    accepted: int = 0

    def take(self, tokens: list[int]) -> None:
        """Append generated tokens up to the stop token or the limit."""
        for token in tokens:
            if self.finished is not None:
                return
            if token == self.stop_token:
                self.finished = Finish.STOP
                return
            self.output.append(token)
            if len(self.output) >= self.max_new_tokens:
                self.finished = Finish.LENGTH
