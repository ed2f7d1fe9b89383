"""Upstream's own pool object behind this project's pool interface, whatever its signatures."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor

from poolbisect.pools.interface import SlotHolder
from poolbisect.pools.slots import PoolMisuseError
from poolbisect.pools.upstream.faults import Guesses, StubGap, SubjectFault, judged
from poolbisect.pools.upstream.requests import RequestView

_COUNT = ("need_size", "num_reqs", "n")
_REQUESTS = ("reqs", "requests")
_REQUEST = ("req", "request")
_SLOTS = ("free_index", "free_indices", "idx", "index")


class UpstreamPool:
    """A pool made by upstream's class: same attributes and methods as `SlotPool`.

    `upstream` is the real object. `alloc` and `free` translate between requests and whatever the
    class takes, a number of slots and a slot in some eras and requests in others. Where upstream
    only counts, requests that hold a slot already keep it, as its scheduler arranged in that era.
    """

    def __init__(self, upstream: Any, subject: str, guesses: Guesses) -> None:
        self.upstream = upstream
        self._subject = subject
        self._guesses = guesses
        self._views: dict[int, RequestView] = {}
        self._alloc_arguments = _required(subject, upstream, "alloc", _COUNT + _REQUESTS)
        self._free_argument = _required(subject, upstream, "free", _SLOTS + _REQUEST)[0]

    @property
    def size(self) -> int:
        return int(self._attribute("size"))

    @property
    def pre_alloc_size(self) -> int:
        return int(getattr(self.upstream, "pre_alloc_size", 0))

    @property
    def max_context_len(self) -> int:
        return int(self._attribute("max_context_len"))

    @property
    def device(self) -> str:
        return str(self._attribute("device"))

    @property
    def req_to_token(self) -> Tensor:
        tensor: Tensor = self._attribute("req_to_token")
        return tensor

    @req_to_token.setter
    def req_to_token(self, tensor: Tensor) -> None:
        own = self.req_to_token
        if tensor.shape != own.shape or tensor.dtype != own.dtype:
            raise ValueError(
                f"req_to_token is {tuple(own.shape)} {own.dtype}, "
                f"not {tuple(tensor.shape)} {tensor.dtype}"
            )
        self.upstream.req_to_token = tensor

    @property
    def free_slots(self) -> list[int]:
        """A copy: the slots that are free, in upstream's own order."""
        return [int(slot) for slot in self._attribute("free_slots")]

    def alloc(self, reqs: Sequence[SlotHolder]) -> list[int] | None:
        """Slots of `reqs`, in order; None when upstream says that too few are free."""
        if self._alloc_arguments[0] in _REQUESTS:
            return self._alloc_for(reqs)
        fresh = [req for req in reqs if req.req_pool_idx is None]
        if reqs and not fresh:
            return [_slot_of(req) for req in reqs]
        answers = [
            [self._view(req) for req in fresh] if name in _REQUESTS else len(fresh)
            for name in self._alloc_arguments
        ]
        with self._judged("alloc"):
            taken = self.upstream.alloc(*answers)
        if taken is None:
            self._forget(fresh)
            return None
        slots = [int(slot) for slot in taken]
        if len(slots) != len(fresh):
            raise self._wrong_count(len(fresh), len(slots))
        for req, slot in zip(fresh, slots, strict=True):
            req.req_pool_idx = slot
        return [_slot_of(req) for req in reqs]

    def free(self, req: SlotHolder) -> None:
        """Give the slot of `req` back and clear it; PoolMisuseError when it holds none."""
        if req.req_pool_idx is None:
            raise PoolMisuseError("a request that holds no slot cannot be freed")
        view = self._view(req)
        with self._judged("free"):
            if self._free_argument in _REQUEST:
                self.upstream.free(view)
            else:
                self.upstream.free(req.req_pool_idx)
                req.req_pool_idx = None
        self._forget([req])

    def write(self, indices: Any, values: Tensor) -> None:
        """Set KV locations through upstream's own write."""
        with self._judged("write"):
            self.upstream.write(indices, values)

    def clear(self) -> None:
        """Make every slot free again; requests that hold one are to be dropped by the caller."""
        with self._judged("clear"):
            self.upstream.clear()
        self._views.clear()

    def available_size(self) -> int:
        with self._judged("available_size"):
            return int(self.upstream.available_size())

    def _alloc_for(self, reqs: Sequence[SlotHolder]) -> list[int] | None:
        holding = {id(req) for req in reqs if req.req_pool_idx is not None}
        with self._judged("alloc"):
            taken = self.upstream.alloc([self._view(req) for req in reqs])
        if taken is None:
            self._forget([req for req in reqs if id(req) not in holding])
            return None
        if len(taken) != len(reqs):
            raise self._wrong_count(len(reqs), len(taken))
        for req, slot in zip(reqs, taken, strict=True):
            req.req_pool_idx = int(slot)
        return [int(slot) for slot in taken]

    def _view(self, req: SlotHolder) -> RequestView:
        # Kept while the request holds a slot: upstream leaves its own marks on the request.
        if id(req) not in self._views:
            self._views[id(req)] = self._new_view(req)
        return self._views[id(req)]

    def _new_view(self, req: SlotHolder) -> RequestView:
        return RequestView(req, self._guesses)

    def _forget(self, reqs: Sequence[SlotHolder]) -> None:
        for req in reqs:
            self._views.pop(id(req), None)

    def _attribute(self, name: str) -> Any:
        with self._judged(f"its pool's {name}"):
            return getattr(self.upstream, name)

    def _judged(self, doing: str) -> AbstractContextManager[None]:
        return judged(self._subject, doing, self._guesses)

    def _wrong_count(self, asked: int, given: int) -> SubjectFault:
        return SubjectFault(
            f"{self._subject} itself fails: alloc of {asked} requests returned {given} slots."
        )


def _slot_of(req: SlotHolder) -> int:
    assert req.req_pool_idx is not None
    return req.req_pool_idx


def _required(subject: str, pool: Any, method: str, known: tuple[str, ...]) -> list[str]:
    """The leading parameters of a method that this adapter can answer, in order."""
    function = getattr(pool, method, None)
    if function is None:
        raise StubGap(f"{subject} cannot be tested: its {type(pool).__name__} has no {method}.")
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in known:
            names.append(name)
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise StubGap(
                f"{subject} cannot be tested: {type(pool).__name__}.{method} asks for {name}, "
                "which this adapter does not know."
            )
        else:
            break
    if not names:
        raise StubGap(
            f"{subject} cannot be tested: {type(pool).__name__}.{method} takes no parameter "
            "that this adapter knows."
        )
    return names
