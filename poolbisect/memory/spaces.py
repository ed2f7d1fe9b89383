"""Index spaces: who may hand out which indices, and who holds one now.

The contract of the whole project: every buffer indexed by a space has more rows than the largest
index the space can hand out, and padding writes only to an index nobody owns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class IndexSpace:
    """Indices `first`..`last` (both handed out), and the present owner of each."""

    name: str
    first: int
    last: int
    owners: dict[int, str] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def take(self, indices: Iterable[int], owners: Iterable[str]) -> None:
        for index, owner in zip(indices, owners, strict=True):
            self.owners[index] = owner
            self.used.add(index)

    def release(self, indices: Iterable[int]) -> None:
        for index in indices:
            self.owners.pop(index, None)

    def missing_rows(self, rows: int) -> int:
        """How many rows a buffer of `rows` rows lacks to be indexed by this space; 0 if none."""
        return max(0, self.last + 1 - rows)

    @property
    def coverage(self) -> float:
        """Share of the space's indices that have been handed out at least once."""
        return len(self.used) / (self.last - self.first + 1)
