"""A scenario with some of its settings changed, by the keys of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from poolbisect.errors import UsageError
from poolbisect.scenario import Scenario
from poolbisect.switches.switch import NONE

TABLES = ("engine", "memory", "workload")
_FIXED = frozenset({"task", "model", "questions", "shots", "max-new-tokens", "seed"})


def configured(scenario: Scenario, settings: Mapping[str, str]) -> Scenario:
    """`scenario` with each key of `engine`, `memory` and `workload` set as text says.

    UsageError names the key that does not exist, may not differ between launches, or does not
    take its value.
    """
    changes: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for key, text in settings.items():
        table, field = _field(scenario, key)
        try:
            value = msgspec.convert(None if text == NONE else text, field.type, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(f"switch {key}: it does not take {text!r} ({error})") from None
        changes[table][field.name] = value
    replaced = {
        table: msgspec.structs.replace(getattr(scenario, table), **fields)
        for table, fields in changes.items()
        if fields
    }
    return msgspec.structs.replace(scenario, **replaced)


def _field(scenario: Scenario, key: str) -> tuple[str, msgspec.structs.FieldInfo]:
    wanted_table, dot, plain = key.rpartition(".")
    for table in TABLES:
        if dot and table != wanted_table:
            continue
        for field in msgspec.structs.fields(getattr(scenario, table)):
            if field.encode_name != plain:
                continue
            if table == "workload" and plain in _FIXED:
                raise UsageError(
                    f"switch {key}: all launches ask the same questions; it cannot be a switch"
                )
            return table, field
    raise UsageError(
        f"switch {key}: a scenario has no such key in {', '.join(TABLES)}; "
        f"`poolbisect scenarios {scenario.name}` shows those it has"
    )
