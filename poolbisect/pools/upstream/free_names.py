"""Which global names a piece of code loads: at once when it is executed, or later when called."""

from __future__ import annotations

import dis
import inspect
import types
from functools import lru_cache

_AT_ONCE_INSIDE = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})


@lru_cache(maxsize=512)
def free_names(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Names loaded when module-level `code` runs, and those that only its functions load.

    Read from the compiled code, where Python itself has settled which names are local.
    """
    at_once: set[str] = set()
    later: set[str] = set()
    _collect(code, at_once, later, executed=True)
    return frozenset(at_once), frozenset(later - at_once)


def _collect(code: types.CodeType, at_once: set[str], later: set[str], executed: bool) -> None:
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
    stored = set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            stored.add(step.argval)
        elif step.opname in _LOADS and step.argval not in stored:
            (at_once if executed else later).add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            runs_now = executed and (
                not constant.co_flags & inspect.CO_OPTIMIZED
                or (constant.co_name in _AT_ONCE_INSIDE and not is_function)
            )
            _collect(constant, at_once, later, executed=runs_now)
