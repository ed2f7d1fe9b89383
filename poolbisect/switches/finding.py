"""What a search can answer, and what vouches for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from poolbisect.switches.referee import Decision


class Answer(StrEnum):
    """Every answer a search can end with; docs/config-bisect.md explains each."""

    CULPRIT = "culprit"
    SUSPECT_RANGE = "suspect_range"
    ALL_OFF_BAD = "all_off_bad"
    ALL_ON_GOOD = "all_on_good"
    FLAKY = "flaky"
    INCONCLUSIVE = "inconclusive"
    UNTESTABLE = "untestable"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES.get(self, 4)


_EXIT_CODES = {
    Answer.CULPRIT: 0,
    Answer.ALL_OFF_BAD: 2,
    Answer.ALL_ON_GOOD: 2,
    Answer.INFRASTRUCTURE: 3,
    Answer.INTERRUPTED: 130,
}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What vouches for a culprit; each is a decision from launches of its own.

    `again`: the set once more. `without`: the set less one member, by member. `others_on`:
    everything on but that member. `reference`: the reference with the set on, None without one.
    """

    again: Decision
    without: dict[str, Decision]
    others_on: dict[str, Decision]
    reference: Decision | None


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer. `culprit`: a minimal set of switches, in order, empty unless it is certain.

    `certain` are members without which a bad set is good; `suspects` those nothing can be said of,
    since every configuration that would tell them apart is neither good nor bad. `others`: further
    minimal sets that are bad without a member of the first.
    """

    answer: Answer
    reason: str
    culprit: tuple[str, ...] = ()
    certain: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()
    confirmation: Confirmation | None = None
    remarks: tuple[str, ...] = ()


def listed(names: Sequence[str], word: str = "and") -> str:
    if len(names) < 2:
        return names[0] if names else "no switch"
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
