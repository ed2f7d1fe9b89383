"""What the contract probe asks of one state of the sources, and what it answers.

A facet is one buffer on one kind of pool in one configuration. Nothing here needs torch: questions
and answers travel between processes.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

REQ_TO_TOKEN = "req_to_token"
"""The pool's own table, whose rows are the request slots; stands for the pool itself."""


class PoolKind(StrEnum):
    """Upstream's request pools, by what the server is for."""

    NORMAL = "normal"
    PD_DECODE = "pd-decode"
    HYBRID = "hybrid"
    HYBRID_PD_DECODE = "hybrid-pd-decode"


class PoolPlan(msgspec.Struct, frozen=True):
    """One pool to make and the buffers to hold against it. Sizes are in slots, as upstream's."""

    kind: PoolKind
    size: int
    buffers: tuple[str, ...]
    pre_alloc_size: int | None = None
    mamba_size: int | None = None
    extra_buffer: bool = False


class Condition(StrEnum):
    """How a buffer or a pool fares. Only `untestable` and `timed_out` say nothing about it."""

    OK = "ok"
    SHORT = "short"
    ABSENT = "absent"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNTESTABLE = "untestable"

    @property
    def is_known(self) -> bool:
        return self not in (Condition.UNTESTABLE, Condition.TIMED_OUT)

    @property
    def is_fault(self) -> bool:
        return self in (Condition.SHORT, Condition.CRASHED)


class BufferState(msgspec.Struct, frozen=True):
    """One buffer against its index space: indices up to `last` are handed out, `rows` exist.

    `expression` is how the sources compute the rows, at `line` of `file`.
    """

    condition: Condition
    rows: int | None = None
    last: int | None = None
    expression: str = ""
    file: str = ""
    line: int = 0
    detail: str = ""

    @property
    def missing(self) -> int:
        """Rows that lack for the largest index."""
        if self.rows is None or self.last is None:
            return 0
        return max(0, self.last + 1 - self.rows)


class PoolState(msgspec.Struct, frozen=True):
    """One pool: whether it can be made, how it behaves (by aspect, in words) and its buffers."""

    condition: Condition
    detail: str = ""
    behaviour: dict[str, str] = {}
    buffers: dict[str, BufferState] = {}


class ContractState(msgspec.Struct, frozen=True):
    """Everything the probe found at one state of the sources, by kind of pool."""

    pools: dict[PoolKind, PoolState]

    @property
    def untestable(self) -> str:
        """The first reason why some facet could not be judged, empty if all were."""
        for pool in self.pools.values():
            judged = [(pool.condition, pool.detail)]
            judged += [(buffer.condition, buffer.detail) for buffer in pool.buffers.values()]
            for condition, detail in judged:
                if not condition.is_known:
                    return detail or condition.value
        return ""


def whole(plans: tuple[PoolPlan, ...], condition: Condition, detail: str) -> ContractState:
    """The state of sources at which every pool fares alike, for example because they crash."""
    return ContractState({plan.kind: PoolState(condition, detail) for plan in plans})
