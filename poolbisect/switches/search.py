"""The search: both ends, a minimal set of switches, its confirmation, and the answer."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.evidence.verdict import Verdict
from poolbisect.switches.finding import Answer, Confirmation, Finding, listed
from poolbisect.switches.isolation import Names, Reduced, minimal_bad_set, ranked
from poolbisect.switches.reasons import culprit_reason, range_reason, remarks
from poolbisect.switches.referee import Decision, Referee

MOST_SETS = 3


def search(order: Sequence[str], referee: Referee, *, reference: str | None = None) -> Finding:
    """Find which of the switches, given in the order to try them, make the subject bad."""
    everything = frozenset(order)
    wrong = _check_ends(everything, referee)
    if wrong is not None:
        return wrong
    found = minimal_bad_set(frozenset(), everything, order, referee.verdict)
    again = referee.again(found.whole, "confirmation")
    names = tuple(ranked(found.whole, order))
    if again.verdict is not Verdict.BAD:
        return _not_again(names, again)
    without = {name: referee.decide(found.whole - {name}, f"without {name}") for name in names}
    others_on = {name: referee.decide(everything - {name}, f"all on but {name}") for name in names}
    same = None
    if reference is not None:
        same = referee.reference_with(found.whole, "reference, same switches")
    confirmation = Confirmation(again, without, others_on, same)
    others = _other_sets(found, everything, order, referee)
    noted = tuple(remarks(names, confirmation, others, order, referee, reference))
    certain = tuple(ranked(found.needed, order))
    if found.unclear:
        return Finding(
            Answer.SUSPECT_RANGE,
            range_reason(certain, tuple(ranked(found.unclear, order)), without),
            certain=certain,
            suspects=tuple(ranked(found.unclear, order)),
            others=others,
            confirmation=confirmation,
            remarks=noted,
        )
    return Finding(
        Answer.CULPRIT,
        culprit_reason(names, again),
        culprit=names,
        certain=certain,
        others=others,
        confirmation=confirmation,
        remarks=noted,
    )


def _check_ends(everything: Names, referee: Referee) -> Finding | None:
    off = referee.decide(frozenset(), "all off")
    if off.verdict is Verdict.BAD:
        return Finding(
            Answer.ALL_OFF_BAD,
            f"bad with every switch off ({off.reason}); none of these switches makes the "
            "difference: add others, or choose safer off states",
        )
    if off.verdict is not Verdict.GOOD:
        return _undecided("off", off)
    on = referee.decide(everything, "all on")
    if on.verdict is Verdict.GOOD:
        return Finding(
            Answer.ALL_ON_GOOD,
            f"good with every switch on ({on.reason}); there is no difference to look for: add "
            "the switches of the configuration that failed",
        )
    return None if on.verdict is Verdict.BAD else _undecided("on", on)


def _undecided(state: str, decision: Decision) -> Finding:
    if decision.verdict is Verdict.UNTESTABLE:
        return Finding(
            Answer.UNTESTABLE,
            f"with every switch {state} the subject cannot be judged: {decision.reason}",
        )
    return Finding(
        Answer.INCONCLUSIVE, f"with every switch {state} nothing is decided: {decision.reason}"
    )


def _not_again(names: Sequence[str], again: Decision) -> Finding:
    words = listed(names)
    reason = f"the first launch with {words} on was bad, the second {again.verdict}: {again.reason}"
    flaky = again.verdict is Verdict.GOOD
    return Finding(
        Answer.FLAKY if flaky else Answer.INCONCLUSIVE,
        f"{reason}; give --noise, the chance that one launch's verdict is wrong"
        if flaky
        else reason,
        suspects=tuple(names),
    )


def _other_sets(
    found: Reduced, everything: Names, order: Sequence[str], referee: Referee
) -> tuple[tuple[str, ...], ...]:
    """Minimal sets that stay bad when a member of those before is off; at most two more."""
    sets: list[Reduced] = [found]
    universe = everything
    while len(sets) < MOST_SETS:
        bad = next(
            (
                universe - {name}
                for name in ranked(sets[-1].needed, order)
                if referee.verdict(universe - {name}, f"{name} off") is Verdict.BAD
            ),
            None,
        )
        if bad is None:
            break
        universe = bad
        sets.append(minimal_bad_set(frozenset(), universe, order, referee.verdict))
    return tuple(tuple(ranked(one.whole, order)) for one in sets[1:])
