"""What a night is asked to do, and whom it tells how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from poolbisect.canary import Watch
from poolbisect.nightly.comparisons import Rules
from poolbisect.nightly.config import NightlyConfig


@dataclass(frozen=True, slots=True)
class NightRequest:
    """What the user asked for. `store` is the results database; `command` the words typed."""

    config: NightlyConfig
    out: Path
    store: Path
    repo: Path | None = None
    bisect: bool = False
    command: tuple[str, ...] = ()

    @property
    def rules(self) -> Rules:
        return Rules(self.config.alpha, self.config.minimum_drop)


class Display:
    """What a screen can be told; by default nothing is shown."""

    def scenario(self, name: str, number: int, count: int) -> Watch | None:
        """A scenario begins; where its progress is to go."""
        return None

    def says(self, words: str) -> None: ...
