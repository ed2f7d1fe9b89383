"""What in a server's log tells why it failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_LONGEST = 300
# A log line's own head: times in brackets, a rank, a level; what follows is the exception's name.
_HEAD = r"^(?:\[[^\]\n]*\]\s*|\d{4}-\d\d-\d\d[^\[\n]{0,40}|(?:ERROR|CRITICAL)\S*\s+)*"


class Sign(StrEnum):
    """A reason to fail that a log can name."""

    ILLEGAL_ACCESS = "illegal-access"
    DEVICE_ASSERT = "device-assert"
    OUT_OF_MEMORY = "out-of-memory"
    NAN = "nan"
    INDEX = "index"
    UNKNOWN_FLAG = "unknown-flag"
    PORT = "port"
    IMPORT = "import"
    CHILD = "child"
    """A child process failed, and nothing says why."""
    ERROR = "error"
    """An exception of another kind ended a traceback."""

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Sign.ILLEGAL_ACCESS: "illegal memory access",
    Sign.DEVICE_ASSERT: "device-side assert",
    Sign.OUT_OF_MEMORY: "out of memory",
    Sign.NAN: "NaN",
    Sign.INDEX: "index out of range",
    Sign.UNKNOWN_FLAG: "the server does not know a flag it was given",
    Sign.PORT: "its port is taken",
    Sign.IMPORT: "its code does not import",
    Sign.CHILD: "a child process failed",
    Sign.ERROR: "it raised an error",
}

# In the order in which they are believed: what names a mechanism comes before what follows from it.
_SIGNS = (
    (
        Sign.ILLEGAL_ACCESS,
        r"illegal memory access was encountered|cudaErrorIllegalAddress|misaligned address"
        r"|Memory access fault by GPU|an illegal instruction was encountered",
    ),
    (Sign.DEVICE_ASSERT, r"device-side assert(?:ion)? triggered|cudaErrorAssert"),
    (
        Sign.OUT_OF_MEMORY,
        r"CUDA out of memory|HIP out of memory|OutOfMemoryError|std::bad_alloc"
        r"|can't allocate memory|Not enough memory|" + _HEAD + r"MemoryError\b",
    ),
    (
        Sign.UNKNOWN_FLAG,
        r"error: unrecognized arguments:|error: argument \S+: (?:invalid|expected)"
        r"|error: ambiguous option|error: the following arguments are required",
    ),
    (Sign.PORT, r"[Aa]ddress already in use"),
    (Sign.INDEX, _HEAD + r"IndexError\b|\bindex -?\d+ is out of bounds for dimension"),
    (
        Sign.NAN,
        r"probability tensor contains either `?inf`?, `?nan`?"
        r"|\bNaN (?:in|values? in|detected)\b|\bcontains NaN\b",
    ),
    (
        Sign.IMPORT,
        _HEAD + r"(?:ModuleNotFoundError|ImportError|SyntaxError|IndentationError)\b"
        r"|: undefined symbol: |cannot open shared object file"
        r"|^\S*python\S*: (?:No module named |Error while finding module|can't open file )",
    ),
    (Sign.CHILD, r"sigquit from a child process|child process failed|Scheduler hit an exception"),
    (Sign.ERROR, _HEAD + r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b(?::|\s*$)"),
)
# SGLang imports every model it knows, and logs those whose packages are not there.
_IGNORED = re.compile(r"^.*\b[Ii]gnor(?:e|ed|ing)\b.*$", re.M)
_PATTERNS = tuple((sign, re.compile(text, re.M)) for sign, text in _SIGNS)


@dataclass(frozen=True, slots=True)
class Found:
    """A sign, and the line it stands on."""

    sign: Sign
    line: str


def find_sign(log: str) -> Found | None:
    """The most telling sign in a log, None if there is none.

    Of several lines with the same sign the last counts. A failed child's own exception is
    preferred to the words about the failed child. Lines that say that something is ignored say
    nothing.
    """
    log = _IGNORED.sub("", log)
    for sign, pattern in _PATTERNS:
        matches = list(pattern.finditer(log))
        if not matches:
            continue
        if sign is Sign.CHILD:
            errors = list(_PATTERNS[-1][1].finditer(log))
            sign, matches = (Sign.ERROR, errors) if errors else (sign, matches)
        return Found(sign, _line_at(log, matches[-1].end()))
    return None


def is_lost(log: str) -> bool:
    """Whether a log says what no server survives, though its process may still be there."""
    return any(
        pattern.search(log)
        for sign, pattern in _PATTERNS
        if sign in (Sign.ILLEGAL_ACCESS, Sign.DEVICE_ASSERT, Sign.CHILD)
    )


def mentions_nan(log: str) -> str | None:
    """The line in which a log speaks of NaN, None if none does."""
    pattern = next(pattern for sign, pattern in _PATTERNS if sign is Sign.NAN)
    match = pattern.search(log)
    return _line_at(log, match.end()) if match else None


def last_words(log: str) -> str | None:
    """The last line with anything on it."""
    lines = [line.strip() for line in log[-8000:].splitlines()]
    return next((_shortened(line) for line in reversed(lines) if line), None)


def _line_at(log: str, position: int) -> str:
    start = log.rfind("\n", 0, position) + 1
    end = log.find("\n", position)
    return _shortened(log[start : end if end >= 0 else len(log)].strip())


def _shortened(line: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in line)
    return printable if len(printable) <= _LONGEST else printable[: _LONGEST - 1] + "…"
