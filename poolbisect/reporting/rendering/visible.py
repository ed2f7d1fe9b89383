"""Text from outside made visible: what a screen would swallow or turn round is spelled out."""

from __future__ import annotations

import re

# Controls without tab and newline, marks that change the direction of text, separators of lines,
# lone surrogates and noncharacters: not allowed in HTML or XML, or able to hide what follows them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_NONCHARACTERS = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(1, 17) for low in (0xFFFE, 0xFFFF))
    + "]"
)


def visible(text: str) -> str:
    """`text` with control and direction characters as `␀` or `[U+202E]`."""
    return _NONCHARACTERS.sub(_named, _HIDDEN.sub(_named, text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(visible(text).split())


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"[U+{code:04X}]"
