"""What upstream's pools see of a request: the fields they ask for, under any era's name."""

from __future__ import annotations

from typing import Any

import torch

from poolbisect.pools.interface import SlotHolder
from poolbisect.pools.upstream.faults import Guesses
from poolbisect.pools.upstream.stubs import PoolbisectStub, prepared

_SLOT = "req_pool_idx"
_MAMBA_SLOTS = ("mamba_pool_idx", "mamba_ping_pong_track_buffer")
_NEXT_TRACK = "mamba_next_track_idx"
# Fields that mean "none yet" on a fresh request.
_EMPTY_SUFFIXES = ("_idx", "_buffer", "_indices", "_index")


class RequestView:
    """A request as upstream's code sees it.

    The slot is the real request's own. Other fields come from the real request where it has
    them; predicates are False, indices and buffers None. What upstream sets is kept here. `kv` is
    the request's KV bookkeeping, which later states of upstream ask for the same fields.
    """

    def __init__(self, req: SlotHolder, guesses: Guesses) -> None:
        self.__dict__.update(_req=req, _guesses=guesses)

    def __getattr__(self, name: str) -> Any:
        req: SlotHolder = self.__dict__["_req"]
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == _SLOT:
            return req.req_pool_idx
        if name == "kv":
            return self
        if name == "holds_kv":
            return req.req_pool_idx is not None
        if name == "kv_allocated_len":
            # A request between two chunks of its prefill has KV, committed or not.
            return getattr(req, name, max(req.kv_committed_len, int(req.is_chunked)))
        if name in ("is_chunked", "inflight_middle_chunks"):
            return req.is_chunked
        if hasattr(req, name):
            return getattr(req, name)
        if name.endswith(_EMPTY_SUFFIXES):
            return None
        return prepared(name) or PoolbisectStub(f"the request's {name}", self.__dict__["_guesses"])

    def __setattr__(self, name: str, value: Any) -> None:
        if name == _SLOT:
            self.__dict__["_req"].req_pool_idx = None if value is None else int(value)
        else:
            self.__dict__[name] = value


class HybridRequestView(RequestView):
    """A request of a hybrid model as upstream sees it.

    Its mamba slots are the real request's own, which has them as numbers where upstream has
    tensors of them, int64 on the pool's device.
    """

    def __init__(self, req: SlotHolder, guesses: Guesses, device: str) -> None:
        super().__init__(req, guesses)
        self.__dict__["_device"] = device

    def __getattr__(self, name: str) -> Any:
        if name == "holds_mamba":
            return self.__dict__["_req"].mamba_pool_idx is not None
        value = super().__getattr__(name)
        if name in _MAMBA_SLOTS and value is not None:
            return torch.tensor(value, dtype=torch.int64, device=self.__dict__["_device"])
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _MAMBA_SLOTS:
            setattr(self.__dict__["_req"], name, None if value is None else value.tolist())
        elif name == _NEXT_TRACK:
            setattr(self.__dict__["_req"], name, value)
        else:
            super().__setattr__(name, value)
