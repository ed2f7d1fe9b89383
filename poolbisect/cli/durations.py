"""Durations on the command line: 90, 90s, 10m, 2h."""

from __future__ import annotations

import re

import click

_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m or h; more than 0."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return float(value)
        match = _FORM.fullmatch(str(value).strip())
        if match is None or float(match[1]) <= 0:
            self.fail(f"{value!r} is no duration; write 90s, 10m or 2h", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]
