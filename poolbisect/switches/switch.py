"""Switches: settings with an off and an on state, as the user writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from poolbisect.errors import UsageError
from poolbisect.scenario import TomlTable, read_toml

Scalar = str | int | float | bool
NONE = "none"
"""How the absence of a value is written."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key and its value in either state, as text; `none` is no value."""

    key: str
    off: str
    on: str

    def value(self, on: bool) -> str:
        return self.on if on else self.off


@dataclass(frozen=True, slots=True)
class Switch:
    """What is turned on as one. Off is the safest state there is. UsageError when inconsistent."""

    name: str
    settings: tuple[Setting, ...]

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.settings:
            raise UsageError(f"switch {self.name!r}: a switch has a name and at least one setting")
        keys = [setting.key for setting in self.settings]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise UsageError(f"switch {self.name}: {twice[0]} is set twice")
        if all(setting.off == setting.on for setting in self.settings):
            raise UsageError(f"switch {self.name}: off and on are the same; give two states")

    def words(self, on: bool) -> str:
        return ", ".join(f"{setting.key} {setting.value(on)}" for setting in self.settings)


class _SwitchTable(TomlTable, frozen=True):
    name: Annotated[str, Meta(min_length=1)]
    off: dict[str, Scalar]
    on: dict[str, Scalar]


class _SwitchFile(TomlTable, frozen=True):
    switch: list[_SwitchTable]


def parse_switch(text: str, known: Sequence[Switch] = ()) -> Switch:
    """`KEY=OFF:ON`, with more settings after commas; or the name of a `known` switch.

    The switch is called by its first key. UsageError says how to write it.
    """
    if "=" not in text:
        for switch in known:
            if switch.name == text:
                return switch
        names = ", ".join(switch.name for switch in known)
        there = f"; known by name: {names}" if names else ""
        raise UsageError(f"--switch {text}: write KEY=OFF:ON, such as page-size=1:64{there}")
    settings = []
    for part in text.split(","):
        key, equals, states = part.partition("=")
        off, colon, on = states.partition(":")
        if not (key.strip() and equals and colon):
            raise UsageError(f"--switch {text}: {part!r} is not KEY=OFF:ON, such as page-size=1:64")
        settings.append(Setting(key.strip().lstrip("-"), off.strip(), on.strip()))
    return Switch(settings[0].key, tuple(settings))


def read_switches(path: Path) -> list[Switch]:
    """The switches of a TOML file: `[[switch]]` tables with `name`, `off = {…}`, `on = {…}`.

    UsageError names the file and the switch at fault.
    """
    found: _SwitchFile = read_toml(path, _SwitchFile)
    switches = []
    for table in found.switch:
        if set(table.off) != set(table.on):
            odd = sorted(set(table.off) ^ set(table.on))
            raise UsageError(f"{path}: switch {table.name}: {odd[0]} is in one of off and on only")
        settings = (Setting(key, _text(table.off[key]), _text(table.on[key])) for key in table.off)
        switches.append(Switch(table.name, tuple(settings)))
    if not switches:
        raise UsageError(f"{path}: there is no [[switch]] in it")
    return switches


def check_distinct(switches: Iterable[Switch]) -> None:
    """UsageError if there is none, or two share a name or a key."""
    names: set[str] = set()
    owner: dict[str, str] = {}
    for switch in switches:
        if switch.name in names:
            raise UsageError(f"switch {switch.name} is given twice; leave one out")
        names.add(switch.name)
        for setting in switch.settings:
            if setting.key in owner:
                raise UsageError(
                    f"switches {owner[setting.key]} and {switch.name} both set {setting.key}; "
                    "leave one out"
                )
            owner[setting.key] = switch.name
    if not names:
        raise UsageError("there is no switch to try; give --switch KEY=OFF:ON")


def states(switches: Iterable[Switch], on: Iterable[str]) -> dict[str, str]:
    """Every key of `switches` and its value, with those named in `on` on."""
    active = set(on)
    return {
        setting.key: setting.value(switch.name in active)
        for switch in switches
        for setting in switch.settings
    }


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
