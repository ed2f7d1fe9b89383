"""Stand-ins for what a slice of upstream's code names but does not need to work."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor

from poolbisect.pools.upstream.faults import Guesses, Unanswered

_CLASS_NAME = re.compile(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")
# Predicates of the platform: all of them are False on the plain CPU that slices run on.
_PREDICATE = re.compile(r"_?(is|has|cpu_has)_\w+$")


class PoolbisectStub:
    """A falsy object that hands out further stubs, and refuses to make up a value.

    Calling it, taking an attribute or an item and entering it as a context are harmless. Its
    truth is a guess, which is noted. Numbers, order, length and items to iterate are refused.
    """

    def __init__(self, name: str, guesses: Guesses) -> None:
        self.__dict__["_stub"] = (name, guesses)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        return self._further(f".{attribute}")

    def __setattr__(self, attribute: str, value: Any) -> None:
        self.__dict__[attribute] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], type | types.FunctionType):
            return args[0]  # used as a decorator
        return self._further("()")

    def __getitem__(self, key: Any) -> Any:
        return self._further("[…]")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __bool__(self) -> bool:
        name, guesses = self.__dict__["_stub"]
        guesses.note(f"whether {name}")
        return False

    def _further(self, suffix: str) -> PoolbisectStub:
        name, guesses = self.__dict__["_stub"]
        return PoolbisectStub(name + suffix, guesses)

    def _refuse(self, *_: Any) -> NoReturn:
        raise Unanswered(f"the value of {self.__dict__['_stub'][0]}")

    __iter__ = __len__ = __contains__ = _refuse
    __int__ = __index__ = __float__ = __neg__ = __abs__ = __invert__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __matmul__ = __rmatmul__ = _refuse
    __hash__ = object.__hash__


class _PlaceholderType(type):
    """The type of empty classes that stand for upstream's: their attributes are stubs."""

    guesses: Guesses

    def __getattr__(cls, attribute: str) -> Any:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        return PoolbisectStub(f"{cls.__name__}.{attribute}", cls.guesses)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "guesses" not in vars(cls):
            return super().__call__(*args, **kwargs)  # a real class derived from a placeholder
        return PoolbisectStub(f"{cls.__name__}()", cls.guesses)


class NoMemorySaver:
    """Upstream's memory-saver adapter, saving nothing."""

    enabled = False

    @classmethod
    def create(cls, *_: Any, **__: Any) -> NoMemorySaver:
        return cls()

    @contextmanager
    def region(self, *_: Any, **__: Any) -> Iterator[None]:
        yield


def _no_custom_memory_pool(*_: Any, **__: Any) -> tuple[bool, None, None]:
    """Whether there is a custom pool, the pool, and its kind."""
    return False, None, None


def _no(*_: Any, **__: Any) -> bool:
    return False


def _copied(values: Any, *, dtype: torch.dtype, device: Any) -> Tensor:
    """A host list on a device, copied without staging."""
    return torch.tensor(values, dtype=dtype, device=device)


_PREPARED: dict[str, Callable[..., Any] | type] = {
    "TorchMemorySaverAdapter": NoMemorySaver,
    "maybe_init_custom_mem_pool": _no_custom_memory_pool,
    "get_bool_env_var": _no,
    "async_h2d": _copied,
}


def prepared(name: str) -> Callable[..., Any] | type | None:
    """The stand-in of a name whose answer on a plain CPU is known, or None."""
    return _PREPARED.get(name) or (_no if _PREDICATE.match(name) else None)


def placeholder(name: str, guesses: Guesses) -> Any:
    """An empty class for a name written as one (`isinstance` may see it), else a stub."""
    if _CLASS_NAME.match(name):
        return _PlaceholderType(name, (), {"guesses": guesses})
    return PoolbisectStub(name, guesses)


def is_placeholder_class(value: object) -> bool:
    """Whether a value is an empty class made by `placeholder`, not one derived from it."""
    return isinstance(value, _PlaceholderType) and "guesses" in vars(value)
