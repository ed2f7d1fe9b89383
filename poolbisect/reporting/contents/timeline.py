"""The report of a timeline: every transition, and what could not be judged."""

from __future__ import annotations

from collections import Counter

from poolbisect.reporting import numbers
from poolbisect.reporting.contents.environment import plain_environment
from poolbisect.reporting.contents.transitions import transition_table
from poolbisect.reporting.documents.timeline import TimelineDocument
from poolbisect.reporting.model import (
    Case,
    CaseOutcome,
    Cell,
    Code,
    Column,
    Fact,
    Report,
    Section,
    Table,
    Tone,
    Words,
    in_words,
)


def timeline_report(document: TimelineDocument) -> Report:
    kinds = Counter(one.kind for one in document.transitions)
    sections = [
        _transitions(document),
        _untestable(document),
        plain_environment(document.command, document.environment, ""),
    ]
    return Report(
        kind="timeline",
        name=f"{document.good[:12]}..{document.bad[:12]}",
        verdict=numbers.plural(len(document.transitions), "transition"),
        tone=Tone.PLAIN,
        headline=_headline(document, kinds),
        summary=(),
        facts=(
            Fact(f"{document.history}s", f"{document.commits:,}"),
            Fact("probed", f"{document.probed:,}", "the others have the same sources as one"),
            Fact("untestable", f"{document.untestable:,}"),
            Fact("took", numbers.seconds(document.seconds)),
        ),
        sections=tuple(section for section in sections if section is not None),
        cases=(Case("timeline", CaseOutcome.PASSED, seconds=document.seconds),),
        started=document.started,
        seconds=document.seconds,
    )


def _headline(document: TimelineDocument, kinds: Counter[str]) -> Words:
    if not document.transitions:
        return (f"Every {document.history} keeps the contract as the first one does.",)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    last = document.transitions[-1]
    return (f"{counted}; the last at ", Code(last.name[:12]), ": ", *in_words(last.text), ".")


def _transitions(document: TimelineDocument) -> Section | None:
    if not document.transitions:
        return None
    table = transition_table(document.transitions, document.history)
    return Section("transitions", "Transitions", (table,))


def _untestable(document: TimelineDocument) -> Section | None:
    if not document.untestable_reasons:
        return None
    rows = tuple(
        (Cell((one.commit or one.release or "")[:12], code=True), Cell(one.reason))
        for one in document.untestable_reasons
    )
    table = Table(
        "Positions that could not be judged in full; none of them is blamed",
        (Column(document.history), Column("reason")),
        rows,
        filtered=len(rows) > 8,
        folded=len(rows) > 8,
    )
    return Section("untestable", "Untestable", (table,))
