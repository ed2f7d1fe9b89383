"""The verdict of a configuration, from as many launches as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolbisect.evidence.verdict import Verdict
from poolbisect.switches.comparing import Opinion, compared, unlike_a_score
from poolbisect.switches.isolation import Names
from poolbisect.switches.launch import Launch, LaunchRequest, Role
from poolbisect.switches.ledger import Ledger
from poolbisect.switches.plan import Plan

_RESOLVED = (Verdict.GOOD, Verdict.BAD)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was concluded of a configuration, and from which of its launches, in order."""

    on: Names
    opinion: Opinion
    launches: tuple[Launch, ...]

    @property
    def verdict(self) -> Verdict:
        return self.opinion.verdict

    @property
    def reason(self) -> str:
        return self.opinion.reason


class Referee:
    """Judges configurations. Each is decided once; `again` decides from new launches."""

    def __init__(
        self, ledger: Ledger, plan: Plan, everything: Names, *, reference: str | None = None
    ) -> None:
        self._ledger = ledger
        self._everything = _request(everything)
        self._plan = plan
        self._reference = reference
        self.decisions: dict[Names, Decision] = {}

    def verdict(self, on: Names, reason: str) -> Verdict:
        return self.decide(on, reason).verdict

    def decide(self, on: Names, reason: str) -> Decision:
        if on not in self.decisions:
            self.decisions[on] = self._from_launches(_request(on), 0, reason)
        return self.decisions[on]

    def again(self, on: Names, reason: str) -> Decision:
        """Decide once more, from launches that the first decision did not use."""
        first = self.decide(on, reason)
        return self._from_launches(_request(on), len(first.launches), reason)

    def reference_with(self, on: Names, reason: str) -> Decision:
        """The same configuration of the reference."""
        return self._from_launches(_request(on, Role.REFERENCE), 0, reason)

    def at_concurrency(self, on: Names, concurrency: int) -> Decision:
        """The configuration with so many requests in flight, from a single launch."""
        request = LaunchRequest(tuple(sorted(on)), concurrency=concurrency)
        reason = f"concurrency {concurrency}"
        launch = self._ledger.nth(request, 0, reason)
        return Decision(on, self._opinion([launch], request, reason), (launch,))

    def _from_launches(self, request: LaunchRequest, first: int, reason: str) -> Decision:
        launches: list[Launch] = []
        opinion = Opinion(Verdict.UNKNOWN, "not launched")
        for number in range(first, first + self._plan.most):
            launches.append(self._ledger.nth(request, number, reason))
            opinion = self._opinion(launches, request, reason)
            if opinion.verdict is not Verdict.UNKNOWN:
                break
        return Decision(frozenset(request.on), opinion, tuple(launches))

    def _opinion(self, launches: Sequence[Launch], request: LaunchRequest, reason: str) -> Opinion:
        plain = unlike_a_score(launches[-1])
        if plain is not None:
            if plain.verdict not in _RESOLVED:
                return plain
            return self._vote([launch.verdict for launch in launches], plain)
        if any(launch.verdict is not None for launch in launches):
            return Opinion(Verdict.UNTESTABLE, "some launches give a verdict and some a score")
        standard = self._standard(request, len(launches), reason)
        if standard is None:
            return self._against_gate(launches[-1])
        first_of_standard = unlike_a_score(standard[-1])
        if first_of_standard is not None:
            return Opinion(
                Verdict.UNKNOWN, f"what it is compared with failed: {first_of_standard.reason}"
            )
        if request == self._everything:
            return compared(standard, launches, self._plan)
        return compared(standard, launches, self._plan, lambda: self._contrast(len(launches)))

    def _contrast(self, count: int) -> Sequence[Launch]:
        on = self._everything
        return [self._ledger.nth(on, number, "all on") for number in range(count)]

    def _vote(self, verdicts: Sequence[Verdict | None], last: Opinion) -> Opinion:
        bad, good = verdicts.count(Verdict.BAD), verdicts.count(Verdict.GOOD)
        if abs(bad - good) < self._plan.lead:
            return Opinion(Verdict.UNKNOWN, f"bad in {bad} launches and good in {good}")
        winner = Verdict.BAD if bad > good else Verdict.GOOD
        if bad + good == 1:
            return last
        return Opinion(winner, f"bad in {bad} launches and good in {good}")

    def _standard(self, request: LaunchRequest, count: int, reason: str) -> Sequence[Launch] | None:
        """The launches to compare with: all off, and for all off itself the reference's."""
        against = LaunchRequest(())
        if request == against:
            if self._reference is None:
                return None
            against = LaunchRequest((), Role.REFERENCE)
        return [
            self._ledger.nth(against, number, f"to compare: {reason}") for number in range(count)
        ]

    def _against_gate(self, launch: Launch) -> Opinion:
        gate, accuracy = self._plan.gate, launch.accuracy
        assert accuracy is not None
        if gate is None:
            return Opinion(Verdict.GOOD, "all off is the standard the others are compared with")
        if accuracy < gate:
            return Opinion(Verdict.BAD, f"{accuracy:.4f} is below the gate of {gate:g}")
        return Opinion(Verdict.GOOD, f"{accuracy:.4f} reaches the gate of {gate:g}")


def _request(on: Names, role: Role = Role.SUBJECT) -> LaunchRequest:
    return LaunchRequest(tuple(sorted(on)), role)
