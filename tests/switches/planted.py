"""An oracle with a planted fault: pure, counts its launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended
from poolbisect.switches.finding import Finding
from poolbisect.switches.journal import Journal, Line, create, resume
from poolbisect.switches.launch import Launch, LaunchRequest, Role, Traits, Watch
from poolbisect.switches.ledger import Ledger
from poolbisect.switches.plan import Plan
from poolbisect.switches.referee import Referee
from poolbisect.switches.request import ConfigRequest
from poolbisect.switches.search import search
from poolbisect.switches.switch import Setting, Switch

Rule = Callable[[frozenset[str]], Verdict]


class PlantedOracle:
    """Answers by a rule; `launches` are the sets launched, in order."""

    def __init__(self, rule: Rule) -> None:
        self.traits = Traits("planted")
        self.rule = rule
        self.launches: list[frozenset[str]] = []

    def launch(self, request: LaunchRequest, watch: Watch) -> Launch:
        assert request.role is Role.SUBJECT
        watch("launching")
        on = frozenset(request.on)
        self.launches.append(on)
        verdict = self.rule(on)
        if verdict is Verdict.UNTESTABLE:
            return Launch(request=request, ended=Ended.NOT_APPLICABLE, detail="refused together")
        return Launch(request=request, ended=Ended.MEASURED, verdict=verdict)

    def close(self) -> None:
        """Nothing is kept."""


def planted(*culprits: set[str]) -> Rule:
    """Bad as soon as all of any one of the sets is on."""

    def rule(on: frozenset[str]) -> Verdict:
        return Verdict.BAD if any(one <= on for one in culprits) else Verdict.GOOD

    return rule


def asked(order: list[str]) -> ConfigRequest:
    """A request for switches of these names."""
    return ConfigRequest(
        probe="command",
        scenario=None,
        subject="planted",
        symptom="exit",
        switches=tuple(Switch(name, (Setting(name, "false", "true"),)) for name in order),
        plan=Plan(),
    )


class _Unwritten(Journal):
    """A journal that is not kept: property tests make thousands of launches."""

    def append(self, line: Line) -> None:
        del line


def find(
    order: list[str], oracle: PlantedOracle, plan: Plan | None = None
) -> tuple[Finding, Referee]:
    """Search without keeping a journal."""
    ledger = Ledger(oracle, _Unwritten(Path(), asked(order)))
    referee = Referee(ledger, plan or Plan(), frozenset(order))
    return search(order, referee), referee


def find_in(session: Path, order: list[str], oracle: PlantedOracle) -> Finding:
    """Search in a new session or, where there is one, go on with it."""
    at = "2026-01-01T00:00:00+00:00"
    opened = resume(session, at) if session.exists() else create(session, asked(order), [], at)
    with opened as journal:
        return search(order, Referee(Ledger(oracle, journal), Plan(), frozenset(order)))
