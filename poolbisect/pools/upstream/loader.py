"""Upstream's own request pools and consumers, from any tree of its sources."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from poolbisect.errors import NotApplicableError, UsageError
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.upstream import consumers
from poolbisect.pools.upstream.adapter import UpstreamPool
from poolbisect.pools.upstream.consumers import ConsumerRows
from poolbisect.pools.upstream.faults import Guesses, StubGap, judged
from poolbisect.pools.upstream.hybrid_adapter import UpstreamHybridPool
from poolbisect.pools.upstream.mamba_parameters import MambaParameters
from poolbisect.pools.upstream.slicing import Slicer

_POOLS, _DECODE = "sglang/srt/mem_cache/memory_pool.py", "sglang/srt/disaggregation/decode.py"
_USUAL_PATHS = {
    "ReqToTokenPool": _POOLS,
    "DecodeReqToTokenPool": _DECODE,
    "HybridReqToTokenPool": _POOLS,
    "HybridMambaDecodeReqToTokenPool": _DECODE,
}


@dataclass(frozen=True, slots=True)
class SlotRange:
    """What a fresh pool can hand out, and the rows that `req_to_token` has for it."""

    smallest: int
    largest: int
    rows: int


class UpstreamCode:
    """The pool classes and consumers of one tree of sources."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._guesses = Guesses()
        self._slicer = Slicer(tree, self._guesses)
        self._classes: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.tree.name

    def make_pool(
        self,
        size: int,
        max_context_len: int,
        device: str = "cpu",
        pre_alloc_size: int | None = None,
    ) -> UpstreamPool:
        """A fresh pool of upstream's class, the PD-decode one when `pre_alloc_size` is given.

        Raises:
            UsageError: a size that no pool can have.
            NotApplicableError: the tree has no such class.
            SubjectFault: upstream's class raised.
            StubGap: it needs what this project has no stand-in for.
        """
        name = "ReqToTokenPool" if pre_alloc_size is None else "DecodeReqToTokenPool"
        known = _request_pool_arguments(size, max_context_len, device, pre_alloc_size)
        return UpstreamPool(self._construct(name, known), self.name, self._guesses)

    def make_hybrid_pool(
        self,
        size: int,
        max_context_len: int,
        device: str = "cpu",
        *,
        mamba_size: int,
        pre_alloc_size: int | None = None,
        extra_buffer: bool = False,
        overlap: bool = True,
    ) -> UpstreamHybridPool:
        """A fresh pool of upstream's hybrid class, made for a model of one tiny mamba layer.

        `overlap` scheduling makes the ping-pong mapping two columns wide, else one; eras that took
        the width from speculation, which is off here, always have two. Early eras know neither
        an extra buffer nor, in PD decode, a mamba size of its own: what an era's constructor does
        not take is left out. Raises as `make_pool`.
        """
        if mamba_size < 1:
            raise UsageError(f"A mamba pool of size {mamba_size} cannot exist; give 1 or more.")
        name = (
            "HybridReqToTokenPool" if pre_alloc_size is None else "HybridMambaDecodeReqToTokenPool"
        )
        parameters = MambaParameters()
        known = _request_pool_arguments(size, max_context_len, device, pre_alloc_size) | {
            "mamba_size": mamba_size,
            "mamba_spec_state_size": size + (pre_alloc_size or 0),
            "cache_params": parameters,
            "mamba_layer_ids": list(parameters.layers),
            # Before the parameters were one object:
            "mamba_layers": list(parameters.layers),
            "conv_dtype": parameters.dtype.conv,
            "ssm_dtype": parameters.dtype.temporal,
            "conv_state_shape": parameters.shape.conv,
            "temporal_state_shape": parameters.shape.temporal,
            "enable_mamba_extra_buffer": extra_buffer,
            "enable_overlap_schedule": overlap,
            "speculative_num_draft_tokens": None,
        }
        return UpstreamHybridPool(self._construct(name, known), self.name, self._guesses)

    def consumer_rows(self, buffer: str, pool: UpstreamPool) -> ConsumerRows:
        """The first dimension of a slot-indexed buffer that upstream allocates for `pool`.

        Raises:
            NotApplicableError: the tree has no consumer of that name.
            SubjectFault: its expression fails on upstream's own pool.
            StubGap: its expression cannot be read.
        """
        return consumers.consumer_rows(
            buffer, pool.upstream, self.tree, self._slicer, self._guesses
        )

    def pool_class(self, name: str) -> Any:
        """Upstream's class `name`, executed; NotApplicableError when the tree has none."""
        if name not in self._classes:
            path = self._slicer.find_class(name, _USUAL_PATHS[name])
            if path is None:
                raise NotApplicableError(
                    f"{self.name} has no class {name}, so its pools cannot be tested."
                )
            with judged(self.name, f"the definition of {name}", self._guesses):
                self._classes[name] = self._slicer.take(path, name)
        return self._classes[name]

    def _construct(self, name: str, known: dict[str, Any]) -> Any:
        pool_class = self.pool_class(name)
        with judged(self.name, f"the constructor of {name}", self._guesses):
            return pool_class(**self._arguments(pool_class, known))

    def _arguments(self, pool_class: Any, known: dict[str, Any]) -> dict[str, Any]:
        """Those of the known arguments that this era's constructor takes."""
        parameters = inspect.signature(pool_class).parameters
        for name, parameter in parameters.items():
            optional = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if name not in known and parameter.default is parameter.empty and not optional:
                raise StubGap(
                    f"{self.name} cannot be tested: the constructor of {pool_class.__name__} "
                    f"asks for {name}, which this project does not know."
                )
        return {name: value for name, value in known.items() if name in parameters}


def _request_pool_arguments(
    size: int, max_context_len: int, device: str, pre_alloc_size: int | None
) -> dict[str, Any]:
    if size < 1 or max_context_len < 1 or (pre_alloc_size or 0) < 0:
        raise UsageError(
            f"A request pool of size {size}, context length {max_context_len} and pre-alloc "
            f"size {pre_alloc_size or 0} cannot exist; give positive sizes."
        )
    return {
        "size": size,
        "max_context_len": max_context_len,
        "device": str(device),
        "enable_memory_saver": False,
        "pre_alloc_size": pre_alloc_size,
    }


def load_upstream(tree: SourceTree) -> UpstreamCode:
    """The code of a tree, with its request pool class already taken out.

    Raises:
        NotApplicableError: the tree has no request pool.
        SubjectFault, StubGap: as in `UpstreamCode.make_pool`.
    """
    code = UpstreamCode(tree)
    code.pool_class("ReqToTokenPool")
    return code


def slot_range(pool: UpstreamPool) -> SlotRange:
    """The smallest and largest slot a fresh pool hands out, and its rows; ask before any alloc."""
    slots = pool.free_slots
    if not slots:
        raise ValueError("a pool without free slots does not show its range")
    return SlotRange(min(slots), max(slots), pool.req_to_token.shape[0])


def largest_slot(pool: UpstreamPool) -> int:
    """The largest slot a fresh pool can hand out; ask before any alloc."""
    return slot_range(pool).largest
