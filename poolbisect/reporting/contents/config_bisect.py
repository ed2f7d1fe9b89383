"""The report of a configuration bisect: the answer and its switches, then what vouches for it."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.reporting import numbers
from poolbisect.reporting.contents.accuracy import verdict_cell
from poolbisect.reporting.contents.config_launches import (
    REFERENCE,
    accesses,
    concurrency_section,
    configuration,
    launches_section,
    outside,
)
from poolbisect.reporting.contents.environment import plain_environment
from poolbisect.reporting.documents.config_bisect import ConfigBisectDocument, Decided, SwitchStates
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

VERDICTS = {
    "culprit": ("switches found", Tone.GOOD),
    "suspect_range": ("suspect range", Tone.WARNING),
    "all_off_bad": ("bad with everything off", Tone.WARNING),
    "all_on_good": ("good with everything on", Tone.WARNING),
    "flaky": ("not reproducible", Tone.WARNING),
    "inconclusive": ("inconclusive", Tone.WARNING),
    "untestable": ("untestable", Tone.WARNING),
    "infrastructure": ("infrastructure failure", Tone.WARNING),
    "interrupted": ("interrupted", Tone.WARNING),
}


def config_bisect_report(document: ConfigBisectDocument) -> Report:
    word, tone = VERDICTS.get(document.verdict, (document.verdict, Tone.WARNING))
    sections = [
        _switches(document, _members(document), "members", "The switches that do it"),
        launches_section(document),
        _confirmation(document),
        concurrency_section(document),
        _switches(document, document.switches, "switches", "Every switch"),
        _searched(document),
        plain_environment(document.command, document.environment, document.report),
    ]
    return Report(
        kind="configuration bisect",
        name=document.called,
        verdict=word,
        tone=tone,
        headline=_headline(document),
        summary=_summary(document),
        facts=_facts(document),
        sections=tuple(section for section in sections if section is not None),
        cases=(_case(document),),
        started=document.started,
        seconds=document.seconds,
        exit_code=document.exit_code,
    )


def _headline(document: ConfigBisectDocument) -> Words:
    if document.culprit:
        ending = " makes it bad." if len(document.culprit) == 1 else " make it bad, together."
        return (*_listed(document.culprit), ending)
    if document.suspects or document.certain:
        words: Words = ("It lies in ", *_listed((*document.certain, *document.suspects)))
        needed: Words = (", of which ", *_listed(document.certain), " is certain.")
        if len(document.certain) > 1:
            needed = (*needed[:-1], " are certain.")
        return (*words, *(needed if document.certain else (".",)))
    return in_words(_sentence(document.reason or document.verdict.replace("_", " ")))


def _listed(names: Sequence[str]) -> Words:
    words: list[str | Code] = []
    for at, name in enumerate(names):
        if at:
            words.append(" and " if at == len(names) - 1 else ", ")
        words.append(Code(name))
    return tuple(words)


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _summary(document: ConfigBisectDocument) -> tuple[Words, ...]:
    found: list[Words] = []
    if document.reason and (document.culprit or document.suspects or document.certain):
        found.append(in_words(_sentence(document.reason)))
    found += [("Bad without it as well: ", *_listed(names), ".") for names in document.others]
    found += [in_words(_sentence(remark)) for remark in document.remarks]
    note = _unseen(document)
    if note:
        found.append(in_words(note))
    return tuple(found)


def _unseen(document: ConfigBisectDocument) -> str:
    """Out-of-range accesses in launches whose score was good: the fault is there all the same."""
    quiet = [
        one
        for one in document.launches
        if one.role != REFERENCE and one.verdict == "good" and outside(one)
    ]
    if not quiet:
        return ""
    fewest = min(quiet, key=lambda one: len(one.on))
    return (
        f"Out of range are {accesses(fewest)} reads and writes with "
        f"{configuration(fewest, document)} on as well, where the score is good: the fault is in "
        "the memory there too, and only its effect needs the rest."
    )


def _facts(document: ConfigBisectDocument) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    of = f"of {numbers.plural(len(document.switches), 'switch', 'switches')}"
    named = document.culprit or (*document.certain, *document.suspects)
    if named:
        label = "minimal set" if document.culprit else "suspects"
        facts.append(Fact(label, f"{len(named):,}", of))
    scored = [one for one in document.launches if one.accuracy is not None]
    scored = [one for one in scored if one.role != REFERENCE]
    ends = [
        ("everything off", [one for one in scored if not one.on]),
        ("everything on", [one for one in scored if len(one.on) == len(document.switches)]),
    ]
    for label, launches in ends:
        if launches:
            one = launches[0]
            tone = Tone.BAD if one.verdict == "bad" else Tone.PLAIN
            facts.append(
                Fact(label, numbers.accuracy(one.accuracy), numbers.interval(one.interval), tone)
            )
    every = numbers.plural(2 ** len(document.switches), "configuration")
    facts.append(Fact("launches", f"{len(document.launches):,}", f"of {every}"))
    facts.append(Fact("exit code", str(document.exit_code), numbers.seconds(document.seconds)))
    return tuple(facts)


def _members(document: ConfigBisectDocument) -> tuple[SwitchStates, ...]:
    named = {*(document.culprit or ()), *document.certain, *document.suspects}
    return tuple(switch for switch in document.switches if switch.name in named)


def _switches(
    document: ConfigBisectDocument, switches: Sequence[SwitchStates], anchor: str, title: str
) -> Section | None:
    if not switches:
        return None
    rows = tuple(
        (
            Cell(switch.name, code=True),
            Cell(key, code=True),
            Cell(switch.off.get(key, numbers.NONE), code=True),
            Cell(switch.on.get(key, numbers.NONE), code=True),
        )
        for switch in switches
        for key in dict.fromkeys((*switch.off, *switch.on))
    )
    columns = (Column("switch"), Column("setting"), Column("off"), Column("on"))
    folded = anchor == "switches" and len(rows) > 8
    return Section(
        anchor, title, (Table("Its settings in either state", columns, rows, folded=folded),)
    )


def _confirmation(document: ConfigBisectDocument) -> Section | None:
    sure = document.confirmation
    if sure is None:
        return None
    checks: list[tuple[str, Decided]] = [("the set, launched again", sure.again)]
    checks += [(f"the set without {name}", one) for name, one in sure.without.items()]
    checks += [(f"everything on but {name}", one) for name, one in sure.others_on.items()]
    if sure.reference is not None:
        name = document.reference or REFERENCE
        checks.append((f"{name} with the set on", sure.reference))
    rows = tuple(
        (
            Cell(name),
            verdict_cell(one.verdict),
            Cell(one.reason),
            Cell(f"{one.launches:,}", sort=one.launches),
        )
        for name, one in checks
    )
    columns = (
        Column("what"),
        Column("verdict"),
        Column("how it is known"),
        Column("launches", numeric=True),
    )
    return Section("confirmation", "Confirmation", (Table("Before blame", columns, rows),))


def _searched(document: ConfigBisectDocument) -> Section:
    settings: list[tuple[str, str | None]] = [
        ("subject", document.subject),
        ("reference", document.reference),
        ("scenario", document.scenario),
        ("probe", document.probe),
        ("symptom", document.symptom),
        ("questions a launch", None if not document.questions else f"{document.questions:,}"),
        *(
            (name.replace("_", " "), f"{value}")
            for name, value in document.plan.items()
            if value is not None
        ),
    ]
    rows = tuple((Cell(name), Cell(value, code=True)) for name, value in settings if value)
    table = Table("What was searched, and how", (Column("setting"), Column("value")), rows)
    return Section("search", "Search", (table,))


def _case(document: ConfigBisectDocument) -> Case:
    outcome = CaseOutcome.PASSED if document.exit_code == 0 else CaseOutcome.ERROR
    message = document.reason
    if document.culprit:
        message = f"{document.verdict}: {', '.join(document.culprit)}"
    detail = "\n".join((document.reason, *document.remarks)) if document.culprit else ""
    return Case("answer", outcome, message, detail, document.seconds)
