"""The workflow of `bisect --config`: open the session, search, tabulate, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from poolbisect.errors import InfrastructureError
from poolbisect.switches.concurrency import ConcurrencyRow, against_concurrency
from poolbisect.switches.finding import Answer, Finding
from poolbisect.switches.journal import Journal
from poolbisect.switches.launch import Launch, LaunchOracle, Watch
from poolbisect.switches.ledger import Announce, Ledger
from poolbisect.switches.referee import Decision, Referee
from poolbisect.switches.request import ConfigRequest
from poolbisect.switches.search import search

CONCURRENCY = "concurrency"


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """A launch as it was made, why, and what was concluded of its configuration (None if it was
    only compared with, or nothing was concluded before the end)."""

    launch: Launch
    reason: str
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """A finished search. `started` is UTC; `seconds` those of this process."""

    request: ConfigRequest
    probe: str
    reference: str | None
    finding: Finding
    launches: tuple[LaunchRecord, ...]
    table: tuple[ConcurrencyRow, ...]
    started: datetime
    seconds: float

    @property
    def exit_code(self) -> int:
        return self.finding.answer.exit_code


def config_bisect(
    oracle: LaunchOracle,
    journal: Journal,
    *,
    announce: Announce | None = None,
    watch: Watch | None = None,
) -> ConfigReport:
    """Search, going on from what the journal holds. An interrupt or a failing host is an answer."""
    started, clock = datetime.now(UTC), time.perf_counter()
    request, traits = journal.request, oracle.traits
    ledger = Ledger(oracle, journal, announce, watch)
    order = [switch.name for switch in request.switches]
    referee = Referee(ledger, request.plan, frozenset(order), reference=traits.reference)
    table: tuple[ConcurrencyRow, ...] = ()
    finding: Finding | None = None
    try:
        finding = search(order, referee, reference=traits.reference)
        if traits.concurrency is not None and _tabulates(request, finding):
            table = against_concurrency(frozenset(order), traits.concurrency, referee)
    except KeyboardInterrupt:
        finding = finding or Finding(
            Answer.INTERRUPTED,
            f"interrupted after {launches(len(ledger.history))}; go on with --resume",
        )
    except InfrastructureError as error:
        finding = finding or Finding(Answer.INFRASTRUCTURE, str(error))
    finally:
        oracle.close()
    return ConfigReport(
        request=request,
        probe=traits.name,
        reference=traits.reference,
        finding=finding,
        launches=_records(ledger, referee, finding),
        table=table,
        started=started,
        seconds=time.perf_counter() - clock,
    )


def launches(count: int) -> str:
    return f"{count} {'launch' if count == 1 else 'launches'}"


def _tabulates(request: ConfigRequest, finding: Finding) -> bool:
    if request.tabulate is None:
        return CONCURRENCY in (*finding.culprit, *finding.certain, *finding.suspects)
    return request.tabulate


def _records(ledger: Ledger, referee: Referee, finding: Finding) -> tuple[LaunchRecord, ...]:
    decisions: list[Decision] = list(referee.decisions.values())
    if finding.confirmation is not None:
        decisions.append(finding.confirmation.again)
        if finding.confirmation.reference is not None:
            decisions.append(finding.confirmation.reference)
    owner = {id(launch): decision for decision in decisions for launch in decision.launches}
    made: Sequence[tuple[Launch, str]] = list(zip(ledger.history, ledger.reasons, strict=True))
    return tuple(
        LaunchRecord(launch, reason, owner.get(id(launch)))
        for launch, reason in made
        if launch.request.concurrency is None
    )
