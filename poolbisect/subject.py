"""Subjects: what is under test, as the user names it."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.errors import UsageError

SHIPPED = (
    "original",
    "corrected",
    "unpadded",
    "padded",
    "unreserved",
    "added",
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A shipped state of the pools, `release:<version>` or `commit:<revision>`.

    Which shipped states there are depends on the scenario's family of pools; all have `original`
    and `corrected`.
    """

    kind: str
    reference: str

    @property
    def name(self) -> str:
        return self.reference if self.kind == "shipped" else f"{self.kind}:{self.reference}"


def parse_subject(text: str) -> Subject:
    """The subject `text` names. UsageError when it names none."""
    if text in SHIPPED:
        return Subject("shipped", text)
    kind, colon, reference = text.partition(":")
    if kind in ("release", "commit") and colon and reference:
        return Subject(kind, reference)
    raise UsageError(
        f"{text!r} is no subject; say {', '.join(SHIPPED)} (as far as the scenario's pools have "
        "it), release:<version> such as release:0.5.12, or commit:<revision>"
    )
