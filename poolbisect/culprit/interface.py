"""What the bisect knows of a probe, whatever it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from poolbisect.bisection.outcome import Observation, ProbeRequest
from poolbisect.bisection.plan import Plan


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one position: `folder` is new, empty and its own; what lies elsewhere, or
    does not carry `run_id` where a probe can ask for that, is not this attempt's result."""

    number: int
    run_id: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Probed:
    """What an attempt saw: `observation` for the search, `evidence` (JSON-ready) for the report.

    Evidence holds what the probe wants shown or kept; `accept_length`, `detail`, `log` (a path in
    the attempt's folder) and `provenance` (what exactly ran) are shown where they are present.
    """

    observation: Observation
    evidence: Mapping[str, Any] = field(default_factory=dict)


Watch = Callable[[str], None]
"""Called with a few words on what the probe is doing, for a live display."""


class HistoryProbe(Protocol):
    """Measures positions of one history. Opened for a bisect, closed after it, on any exit."""

    name: str
    """As in `--probe`."""

    def plan(self) -> Plan:
        """How to search with this probe: mode, costs, batch, questions of the ends, symptom."""

    def probe(self, request: ProbeRequest, attempt: Attempt, watch: Watch) -> Probed:
        """Measure one position.

        What the commit does wrong, what cannot be told and what the host does wrong are endings
        of the observation, never exceptions. KeyboardInterrupt passes through, after the probe
        has ended whatever it started.

        Raises:
            UsageError: the probe's own options are wrong, so that no position can be measured.
        """

    def close(self) -> None:
        """End what the probe keeps between positions: processes, worktrees, leases."""
