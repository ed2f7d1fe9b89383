"""Isolating one difference between a good and a bad set of switches, and reducing a bad set.

`isolate` is the dd algorithm of Zeller and Hildebrandt (2002, "Simplifying and isolating
failure-inducing input", IEEE TSE 28:183, section 4), which copes with unresolved tests; without
any of those it is binary search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from poolbisect.evidence.verdict import Verdict

Names = frozenset[str]
Decide = Callable[[Names, str], Verdict]
"""The verdict of a set of switches, and in a few words why it is asked for."""


def isolate(low: Names, high: Names, order: Sequence[str], decide: Decide) -> tuple[Names, Names]:
    """Narrow a good `low` within a bad `high` until one switch lies between them.

    More than one stay between them only if every set that would tell them apart is neither good
    nor bad. For n switches and no unresolved set it takes at most ceil(log2 n) verdicts.
    """
    parts = 2
    while len(between := ranked(high - low, order)) > 1:
        parts = min(parts, len(between))
        narrowed = _narrow(low, high, _split(between, parts), decide)
        if narrowed is not None:
            (low, high), grew = narrowed
            parts = max(parts - 1, 2) if grew else 2
        elif parts < len(between):
            parts *= 2
        else:
            break
    return low, high


def _narrow(
    low: Names, high: Names, pieces: list[Names], decide: Decide
) -> tuple[tuple[Names, Names], bool] | None:
    """The first piece that narrows the difference; True if it left most of it (dd's n - 1)."""
    small_step = len(pieces) > 2
    for piece in pieces:
        added = decide(low | piece, "narrowing")
        if added is Verdict.BAD:
            return (low, low | piece), False
        if added is Verdict.GOOD:
            return (low | piece, high), small_step
        taken = decide(high - piece, "narrowing")
        if taken is Verdict.GOOD:
            return (high - piece, high), False
        if taken is Verdict.BAD:
            return (low, high - piece), small_step
    return None


@dataclass(frozen=True, slots=True)
class Reduced:
    """A bad set no member of which can be left out.

    Without a member of `needed` it is good; without one of `unclear` it is neither good nor bad,
    so that nothing can be said of that member.
    """

    needed: Names
    unclear: Names

    @property
    def whole(self) -> Names:
        return self.needed | self.unclear


def reduce(high: Names, order: Sequence[str], decide: Decide) -> Reduced:
    """Leave out of a bad set whatever it is bad without; every claim is a verdict of its own."""
    while True:
        needed: set[str] = set()
        unclear: set[str] = set()
        for name in ranked(high, order):
            without = decide(high - {name}, f"without {name}")
            if without is Verdict.BAD:
                high = high - {name}
                break
            (needed if without is Verdict.GOOD else unclear).add(name)
        else:
            return Reduced(frozenset(needed), frozenset(unclear))


def minimal_bad_set(good: Names, bad: Names, order: Sequence[str], decide: Decide) -> Reduced:
    """A smallest-by-inclusion bad set within `bad`, given that `good` within it is good.

    One member is isolated at a time, each on top of those found before (the dichotomic search for
    a minimal unsatisfiable core of Hemery, Lecoutre, Sais and Boussemart 2006, ECAI, with `isolate`
    as its search): k members of n take about k (log2 n + 1) verdicts where bad sets stay bad when
    more is switched on. Where they do not, the result is a bad set of which no single member can
    be left out all the same.
    """
    found = good
    while True:
        low, high = isolate(found, bad, order, decide)
        found, bad = found | (high - low), high
        if found == bad:
            break
        verdict = decide(found, "alone")
        if verdict is Verdict.BAD:
            bad = found
            break
        if verdict is not Verdict.GOOD:
            break  # it needs others to run at all: what those are, reducing `bad` finds out
    return reduce(bad, order, decide)


def ranked(names: Names, order: Sequence[str]) -> list[str]:
    return [name for name in order if name in names]


def _split(names: list[str], parts: int) -> list[Names]:
    """`parts` pieces of nearly equal size, larger ones first, in order."""
    size, rest = divmod(len(names), parts)
    pieces, start = [], 0
    for number in range(parts):
        end = start + size + (number < rest)
        pieces.append(frozenset(names[start:end]))
        start = end
    return pieces
