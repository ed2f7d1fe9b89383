"""A search's answer in words."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.evidence.verdict import Verdict
from poolbisect.switches.finding import Confirmation, listed
from poolbisect.switches.isolation import ranked
from poolbisect.switches.referee import Decision, Referee


def culprit_reason(names: Sequence[str], again: Decision) -> str:
    """Why `names` are the culprit."""
    if len(names) == 1:
        return (
            f"bad twice with {names[0]} on and everything else off ({again.reason}), good without"
        )
    count = {2: "both", 3: "all three"}.get(len(names), f"all {len(names)}")
    return (
        f"bad twice with {listed(names)} on and everything else off ({again.reason}); "
        f"it takes {count}: good without any one of them"
    )


def range_reason(
    certain: Sequence[str], suspects: Sequence[str], without: dict[str, Decision]
) -> str:
    example = without[suspects[0]].reason
    them = "it" if len(suspects) == 1 else "one of them"
    verb = "is" if len(certain) == 1 else "are"
    start = f"it is certain that {listed(certain)} {verb} needed; " if certain else ""
    return (
        f"{start}whether {listed(suspects)} {'is' if len(suspects) == 1 else 'are'} needed cannot "
        f"be told: without {them} nothing can be judged ({suspects[0]} off: {example})"
    )


def remarks(
    names: Sequence[str],
    confirmation: Confirmation,
    others: Sequence[Sequence[str]],
    order: Sequence[str],
    referee: Referee,
    reference: str | None,
) -> list[str]:
    """What else an engineer wants to know: a workaround, other causes, whose fault it is."""
    noted = []
    mended = [n for n, d in confirmation.others_on.items() if d.verdict is Verdict.GOOD]
    if mended:
        noted.append(
            f"with everything else on, turning off {listed(mended, 'or')} mends it "
            f"({confirmation.others_on[mended[0]].reason})"
        )
    stays = [n for n, d in confirmation.others_on.items() if d.verdict is Verdict.BAD]
    if stays:
        noted.append(
            f"with everything else on, it stays bad with {listed(stays, 'or')} off: "
            f"{'; '.join(listed(one) for one in others) or 'other switches'} on suffices as well"
        )
    same = confirmation.reference
    if same is not None and reference is not None:
        if same.verdict is Verdict.BAD:
            noted.append(
                f"with {listed(names)} on {reference} falls as well ({same.reason}): it is the "
                "configuration that costs accuracy, not only the subject's code"
            )
        elif same.verdict is Verdict.GOOD:
            noted.append(
                f"with the same switches {reference} is good ({same.reason}): they expose a fault "
                "of the subject, they are not one"
            )
    noted += _hidings(order, referee)
    return noted


def _hidings(order: Sequence[str], referee: Referee) -> list[str]:
    """Where more switches on were good and fewer bad: one of them hides the fault."""
    bad = [on for on, one in referee.decisions.items() if one.verdict is Verdict.BAD]
    good = [on for on, one in referee.decisions.items() if one.verdict is Verdict.GOOD]
    pairs = [(small, large) for small in bad for large in good if small < large]
    if not pairs:
        return []
    small, large = min(pairs, key=lambda pair: len(pair[1] - pair[0]))
    return [
        f"not every fault shows with more switched on: {listed(ranked(small, order))} on is bad, "
        f"with {listed(ranked(large - small, order))} on as well it is good; other minimal sets "
        "may exist"
    ]
