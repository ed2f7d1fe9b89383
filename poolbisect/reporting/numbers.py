"""Numbers as reports write them. A missing number is a dash."""

from __future__ import annotations

NONE = DASH = "\u2013"
MINUS = "\u2212"
TIMES = "\u00d7"


def accuracy(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def interval(value: tuple[float, float] | None) -> str:
    return NONE if value is None else f"{value[0]:.3f}{DASH}{value[1]:.3f}"


def points(difference: float | None) -> str:
    """A difference of two shares, in percentage points."""
    if difference is None:
        return NONE
    return f"{0:.1f} pt" if difference == 0 else signed(100 * difference, 1) + " pt"


def signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text.replace("-", MINUS)


def p_value(value: float | None) -> str:
    """With its relation: "< 0.0001" or "= 0.0123"."""
    if value is None:
        return NONE
    return "< 0.0001" if value < 1e-4 else f"= {value:.4f}"


def count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Never "100 %" or "0 %" unless it is exactly that."""
    if share is None:
        return NONE
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return f"{100 * min(max(share, 0.001), 0.999):.1f} %"


def seconds(value: float) -> str:
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def plural(count_: int, noun: str, more: str | None = None) -> str:
    return f"{count_:,} {noun if count_ == 1 else more or noun + 's'}"


def moment(iso: str) -> str:
    """An ISO time as `2026-11-29 18:28 UTC`; anything else as it is."""
    if len(iso) >= 16 and iso[10] in "T " and iso[4] == iso[7] == "-":
        zone = " UTC" if iso.endswith(("+00:00", "Z")) else f" {iso[19:]}".rstrip()
        return f"{iso[:10]} {iso[11:16]}{zone}"
    return iso


def day(iso: str | None) -> str:
    return NONE if not iso else iso[:10]
