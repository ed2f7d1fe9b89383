"""Text as a terminal showed it: escape codes, carriage returns and progress bars taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\x1b"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
# tqdm: 34%|###4      | 452/1319 [02:11<04:12, 3.4it/s, acc=81.42%]
_BAR = re.compile(r"\d{1,3}%\|[^|]*\|\s*(?P<done>\d{1,9})/(?P<total>\d{1,9})\s*(?:\[[^\]]*\]?)?")


@dataclass(frozen=True, slots=True)
class Segment:
    """What one carriage return left on a line (from 1), without its progress bar."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """How far a progress bar had come on a line."""

    line: int
    done: int
    total: int


def segments(text: str) -> tuple[list[Segment], list[Bar]]:
    """Split text into what each line showed in turn, and the progress bars among it."""
    found: list[Segment] = []
    bars: list[Bar] = []
    for number, line in enumerate(text.split("\n"), 1):
        for part in _CONTROL.sub("", _ESCAPES.sub("", line)).split("\r"):
            rest = part
            bar = None
            for bar in _BAR.finditer(part):
                bars.append(Bar(number, int(bar["done"]), int(bar["total"])))
            if bar is not None:
                rest = part[bar.end() :]
            if rest.strip():
                found.append(Segment(number, rest.strip()))
    return found, bars
