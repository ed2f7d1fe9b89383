"""The bisection as a state machine over commits 0 (oldest) .. n - 1 (newest)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from poolbisect.bisection import exact, sampling
from poolbisect.bisection.facts import (
    Event,
    Facts,
    Forgotten,
    Recorded,
    Resumed,
    Skipped,
    Suspected,
    facts,
)
from poolbisect.bisection.outcome import (
    Ending,
    Kind,
    Observation,
    ProbeRequest,
    Result,
    Spent,
    Verdict,
)
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.bisection.posterior import Floats, position_weights
from poolbisect.errors import UsageError

FEWEST_INFRA = 3
"""Infrastructure failures before their share can stop a search."""


class Search:
    """Asks for probes and takes what they saw, until there is an answer.

    `names` are the commits, oldest first, opaque here. The ends are positions 0 and n - 1: good
    and bad when looking for what was introduced, bad and good for what was fixed. State is the
    list of events; everything else is recomputed from it, so a search can be stopped anywhere
    and built again from the same names, plan and events.
    """

    def __init__(self, names: Sequence[str], plan: Plan, events: Iterable[Event] = ()) -> None:
        """Raises UsageError for fewer than two commits, or weights that do not match them."""
        if len(names) < 2:
            raise UsageError("a bisect needs two commits or more: a good end and a bad one")
        self.names = tuple(names)
        self.plan = plan
        self._weights = position_weights(len(names), plan.weights)
        self._events: list[Event] = []
        self._facts = facts((), plan)
        for event in events:
            self.apply(event)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def spent(self) -> Spent:
        return self._facts.spent

    def apply(self, event: Event) -> None:
        """Take one event. Raises UsageError for positions outside the range."""
        for position in _positions(event):
            self._check(position)
        if isinstance(event, Skipped):
            if event.first > event.last:
                raise UsageError("a range to skip runs from the older commit to the newer one")
            for end in (0, len(self.names) - 1):
                if event.first <= end <= event.last:
                    raise UsageError(
                        f"{self.names[end]} is an end of the range and cannot be skipped; "
                        "start with another end"
                    )
        self._events.append(event)
        self._facts = facts(self._events, self.plan)

    def record(self, position: int, observation: Observation) -> None:
        """What a probe at `position` saw, asked for or not."""
        problem = self._unusable(observation)
        if problem:
            raise UsageError(f"the probe at {self._name(position)} {problem}")
        self.apply(Recorded(position, observation))

    def skip(self, first: int, last: int | None = None) -> None:
        self.apply(Skipped(first, first if last is None else last))

    def forget(self, position: int) -> None:
        self.apply(Forgotten(position))

    def suspect(self, position: int) -> None:
        self.apply(Suspected(position))

    def resume(self) -> None:
        self.apply(Resumed())

    def next(self) -> ProbeRequest | Result:
        """The next probe to run, or the answer. The same until another event is applied."""
        known, plan, last = self._facts, self.plan, len(self.names) - 1
        failures, since = known.recent_infra
        # One commit alone is passed over after its retries; an end cannot be.
        spread = len(known.infra_places) > 1 or bool(known.infra_places & {0, last})
        if failures >= FEWEST_INFRA and 2 * failures > since and spread:
            reason = f"{failures} of the last {since} probes failed for reasons of the host"
            return Result(Kind.INFRASTRUCTURE, reason, known.spent)
        for end in (0, last):
            if end in known.broken:
                reason = f"the end {self.names[end]} cannot be measured; start with another end"
                return Result(Kind.UNTESTABLE, reason, known.spent)
        decide = exact.decide if plan.mode is Mode.EXACT else sampling.decide
        answer = decide(known, plan, self._weights)
        if isinstance(answer, Result):
            return self._recheck(answer) or answer
        return self._within_budget(answer)

    def distribution(self) -> Floats:
        """P(each position is the culprit), shape (n,); flat over the open range if exact.

        Before both ends are measured it is the prior.
        """
        known, last = self._facts, len(self.names) - 1
        seen = known.positions()
        if 0 not in seen or last not in seen:
            return self._weights.copy()
        if self.plan.mode is not Mode.EXACT:
            tally, strata = sampling.tally_of(known, self.plan, last)
            return sampling.fit(tally, strata, self.plan, self._weights).distribution()
        low, high = self._exact_range()
        open_ = self._weights.copy()
        open_[: low + 1] = 0.0
        open_[high + 1 :] = 0.0
        return np.asarray(open_ / open_.sum())

    def _exact_range(self) -> tuple[int, int]:
        verdicts = {p: seen.verdict for p, seen in self._facts.measured if seen.verdict}
        last = len(self.names) - 1
        if verdicts.get(0) is None or verdicts.get(0) is verdicts.get(last):
            return 0, last
        return exact.transitions(verdicts, Verdict(verdicts[0]))[-1]

    def _within_budget(self, request: ProbeRequest) -> ProbeRequest | Result:
        budget, spent = self.plan.budget, self._facts.spent
        over = [
            name
            for name, limit, used in (
                ("probes", budget.probes, spent.probes),
                ("questions", budget.questions, spent.questions),
                ("time", budget.seconds, spent.seconds),
            )
            if limit is not None and used >= limit
        ]
        if over:
            return self._out_of_budget(f"the budget of {over[0]} is used up")
        if budget.questions is not None:
            return replace(
                request, questions=min(request.questions, budget.questions - spent.questions)
            )
        return request

    def _out_of_budget(self, why: str) -> Result:
        known, last = self._facts, len(self.names) - 1
        seen = known.positions()
        if 0 not in seen or last not in seen:
            why += " before both ends were measured"
            return Result(Kind.SUSPECT_RANGE, why, known.spent, None, (1, last), 1.0)
        if self.plan.mode is Mode.EXACT:
            low, high = self._exact_range()
            return Result(Kind.SUSPECT_RANGE, why, known.spent, None, (low + 1, high), 1.0)
        tally, strata = sampling.tally_of(known, self.plan, last)
        model = sampling.fit(tally, strata, self.plan, self._weights)
        return sampling.conclude(known, self.plan, model, why)

    def _recheck(self, answer: Result) -> ProbeRequest | Result | None:
        """Both ends once more before blame, where the plan asks for it."""
        if not self.plan.recheck_ends or answer.culprit is None:
            return None
        last = len(self.names) - 1
        order = [where for where, _ in self._facts.measured]
        inside = [i for i, where in enumerate(order) if where not in (0, last)]
        if not inside:
            return None
        again = set(order[inside[0] :])
        for end in (last, 0):
            if end not in again:
                request = ProbeRequest(
                    end, self.plan.first_questions, reason="is the end still what it was"
                )
                return self._within_budget(request)
        return None

    def _unusable(self, seen: Observation) -> str | None:
        """What is missing in an observation that says it was measured."""
        if seen.ending is not Ending.MEASURED or self.plan.crash_is_bad:
            return None
        if self.plan.mode in (Mode.EXACT, Mode.VERDICTS):
            return None if seen.verdict else "was measured without a verdict; say good or bad"
        if seen.verdict is None and not seen.asked:
            return "was measured without an answer; report it as infra if the answers were lost"
        if self.plan.mode is Mode.PAIRED and seen.outcomes is None:
            return (
                "has no answers by question, which a paired search needs; give outcomes or search "
                "unpaired"
            )
        return None

    def _name(self, position: int) -> str:
        self._check(position)
        return self.names[position]

    def _check(self, position: int) -> None:
        if not 0 <= position < len(self.names):
            raise UsageError(
                f"position {position} is outside the range of {len(self.names)} commits"
            )


def _positions(event: Event) -> tuple[int, ...]:
    match event:
        case Skipped(first, last):
            return first, last
        case Resumed():
            return ()
        case _:
            return (event.position,)
