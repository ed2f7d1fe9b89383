"""Switch states as command-line flags and environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from poolbisect.switches.switch import NONE

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_ABSENT = frozenset({NONE, "false", ""})


def is_variable(key: str) -> bool:
    """Whether a key is an environment variable's name: capitals, digits and underscores."""
    return _VARIABLE.fullmatch(key) is not None


def flags_for(settings: Mapping[str, str]) -> list[str]:
    """`--key value` for each key that is no variable; `--key` alone for true, nothing for false,
    none and the empty text."""
    flags: list[str] = []
    for key, value in settings.items():
        if is_variable(key) or value in _ABSENT:
            continue
        flags.append(f"--{key}")
        if value != "true":
            flags.append(value)
    return flags


def variables_for(settings: Mapping[str, str]) -> dict[str, str | None]:
    """Environment variables to set, or to unset where None."""
    return {
        key: None if value == NONE else value for key, value in settings.items() if is_variable(key)
    }


def with_flags(base: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """`base` with the flags of `settings` as they say, whatever it said of them before."""
    names = {f"--{key}" for key in settings if not is_variable(key)}
    kept: list[str] = []
    dropping = False
    for word in base:
        if word.startswith("--"):
            dropping = word.partition("=")[0] in names
        if not dropping:
            kept.append(word)
    return kept + flags_for(settings)


def value_in(flags: Sequence[str], *names: str) -> str | None:
    """The value of the first of `names` that `flags` give; `true` for one without a value."""
    for number, word in enumerate(flags):
        name, equals, value = word.partition("=")
        if name not in names:
            continue
        if equals:
            return value
        following = flags[number + 1] if number + 1 < len(flags) else "--"
        return "true" if following.startswith("--") else following
    return None
