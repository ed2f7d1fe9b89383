"""Whether a run may be compared with a baseline at all."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class BaselineKey:
    """Everything that must agree before two scores may be compared.

    `n` counts questions; `sampling` is a canonical description such as `greedy` or
    `temperature=0.6 top_p=0.95`; `hardware` names the device. None means "not recorded", which
    agrees only with None.
    """

    model: str | None
    task: str | None
    n: int | None
    shots: int | None
    sampling: str | None
    hardware: str | None
    engine_mode: str | None
    harness_version: str | None


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of the key on which a run departs from a baseline."""

    field: str
    baseline: str | int | None
    run: str | int | None

    def __str__(self) -> str:
        shown = ("not recorded" if value is None else value for value in (self.baseline, self.run))
        return "{}: baseline {}, run {}".format(self.field, *shown)


def differing_fields(baseline: BaselineKey, run: BaselineKey) -> tuple[FieldDifference, ...]:
    """The fields that make the two not comparable, in the key's order; empty if comparable."""
    pairs = ((f.name, getattr(baseline, f.name), getattr(run, f.name)) for f in fields(baseline))
    return tuple(FieldDifference(name, old, new) for name, old, new in pairs if old != new)
