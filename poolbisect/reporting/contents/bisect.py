"""The report of a bisect: the answer and its attribution, the funnel, the posterior."""

from __future__ import annotations

from poolbisect.reporting import numbers
from poolbisect.reporting.contents.environment import plain_environment
from poolbisect.reporting.contents.funnel import funnel_section, posterior_section
from poolbisect.reporting.contents.transitions import transition_table
from poolbisect.reporting.documents.bisect import (
    Attribution,
    BisectDocument,
    Check,
    Confirmation,
    Entry,
)
from poolbisect.reporting.model import (
    Block,
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
    "culprit": ("culprit found", Tone.GOOD),
    "second_step": ("culprit found, and another step", Tone.GOOD),
    "suspect_range": ("suspect range", Tone.WARNING),
    "both_good": ("both ends good", Tone.WARNING),
    "both_bad": ("both ends bad", Tone.WARNING),
    "reversed": ("the ends are the other way round", Tone.WARNING),
    "drift": ("drift, no step", Tone.WARNING),
    "flaky": ("flaky, no step", Tone.WARNING),
    "environment": ("environment, not code", Tone.WARNING),
    "untestable": ("untestable", Tone.WARNING),
    "infrastructure": ("infrastructure failure", Tone.WARNING),
    "interrupted": ("interrupted", Tone.WARNING),
}


def bisect_report(document: BisectDocument) -> Report:
    word, tone = VERDICTS.get(document.verdict, (document.verdict, Tone.WARNING))
    if document.find == "fixed" and document.culprit is not None:
        word = word.replace("culprit", "fix")
    sections = [
        funnel_section(document),
        posterior_section(document),
        _confirmation(document),
        _suspects(document),
        _transitions(document),
        _searched(document),
        plain_environment(document.command, document.environment, document.report),
    ]
    return Report(
        kind="bisect",
        name=f"{document.good.called}..{document.bad.called}",
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


def _headline(document: BisectDocument) -> Words:
    did = "fixed it" if document.find == "fixed" else "introduced it"
    culprit = document.culprit
    if culprit is not None:
        words: Words = (Code(culprit.called), f" {did}")
        return (*words, ": ", Code(culprit.title)) if culprit.title else (*words, ".")
    if document.suspects:
        first, last = document.suspects[0], document.suspects[-1]
        many = numbers.plural(len(document.suspects), document.history)
        if first.name == last.name:
            return ("It lies at ", Code(first.called), ", which could not be confirmed.")
        return (f"It lies in {many}, ", Code(first.called), " to ", Code(last.called), ".")
    return in_words(_sentence(document.reason or document.verdict.replace("_", " ")))


def _summary(document: BisectDocument) -> tuple[Words, ...]:
    found: list[Words] = []
    attribution, culprit = document.attribution, document.culprit
    if attribution is not None:
        found.append(_attributed(attribution))
    if culprit is not None and culprit.remark:
        found.append(("Note: ", *in_words(_sentence(culprit.remark))))
    sure = document.confirmation
    if sure is not None and sure.parent is not None and sure.culprit is not None:
        found.append(_confirmed(document, sure))
    elif document.reason and (culprit is not None or document.suspects):
        found.append(in_words(_sentence(document.reason)))
    if document.merge is not None:
        found.append(("It came with the merge ", Code(document.merge.called), "."))
    for first, last in document.others:
        found.append(
            ("Another step lies between ", Code(first.called), " and ", Code(last.called), ".")
        )
    return tuple(found)


def _confirmed(document: BisectDocument, sure: Confirmation) -> Words:
    """One sentence; the details are in a section of their own."""

    def seen(check: Check | None) -> str:
        return "not tried" if check is None or check.verdict is None else check.verdict

    return (
        f"Measured: the {document.history} before it {seen(sure.parent)}, itself "
        f"{seen(sure.culprit)}, the newer end without it {seen(sure.revert)}.",
    )


def _attributed(attribution: Attribution) -> Words:
    words = in_words(_sentence(attribution.text or attribution.detail or attribution.buffer))
    since = attribution.since
    if since is None or since.called in attribution.text:
        return words
    return (*words, " The line stands since ", Code(since.called), " ", Code(since.title), ".")


def _sentence(text: str) -> str:
    """With a full stop, and a capital unless it starts with a name."""
    text = text.strip()
    if not text:
        return ""
    if text.split()[0].rstrip(",:;").isalpha():
        text = text[0].upper() + text[1:]
    return text + ("" if text[-1] in ".!?" else ".")


def _facts(document: BisectDocument) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    culprit = document.culprit
    if culprit is not None:
        facts.append(Fact(document.history, culprit.called, numbers.day(culprit.date), code=True))
    attribution = document.attribution
    if attribution is not None and attribution.file:
        where = attribution.file.rsplit("/", 1)[-1]
        line = "" if attribution.line is None else f":{attribution.line}"
        facts.append(Fact("where", f"{where}{line}", attribution.buffer, code=True))
    if document.confidence is not None and (culprit is not None or document.suspects):
        facts.append(Fact("confidence", numbers.percent(document.confidence)))
    searched = f"{document.good.called} to {document.bad.called}"
    facts.append(Fact(f"{document.history}s searched", f"{document.commits:,}", searched))
    if document.probes is not None:
        note = numbers.plural(document.questions, "question") if document.questions else ""
        facts.append(Fact("probes", f"{document.probes:,}", note))
    facts.append(Fact("exit code", str(document.exit_code), numbers.seconds(document.seconds)))
    return tuple(facts)


def _confirmation(document: BisectDocument) -> Section | None:
    sure = document.confirmation
    if sure is None:
        return None
    rows = []
    for name, one in (
        ("the one before", sure.parent),
        ("the culprit", sure.culprit),
        ("without the culprit", sure.revert),
    ):
        check = one or Check(text="not tried")
        tone = {"good": Tone.GOOD, "bad": Tone.BAD}.get(check.verdict or "", Tone.WARNING)
        rows.append((Cell(name), Cell(check.verdict or "not tried", tone=tone), Cell(check.text)))
    columns = (Column("what"), Column("verdict"), Column("how it is known"))
    table = Table("Before blame: parent, culprit, and without the culprit", columns, tuple(rows))
    return Section("confirmation", "Confirmation", (table,))


def _suspects(document: BisectDocument) -> Section | None:
    if not document.suspects:
        return None
    table = Table(
        "The step is at one of these",
        (Column(document.history), Column("date"), Column("title")),
        tuple(entry_row(one) for one in document.suspects),
        filtered=len(document.suspects) > 8,
    )
    return Section("suspects", "Suspects", (table,))


def entry_row(one: Entry) -> tuple[Cell, ...]:
    return (
        Cell(one.called, code=True),
        Cell(numbers.day(one.date)),
        Cell(one.title, code=True),
    )


def _transitions(document: BisectDocument) -> Section | None:
    if not document.transitions:
        return None
    blocks: tuple[Block, ...] = (transition_table(document.transitions, document.history),)
    return Section("transitions", "Contract transitions in the range", blocks)


def _searched(document: BisectDocument) -> Section:
    settings = [
        ("looked for", f"first {'fixed' if document.find == 'fixed' else 'bad'} one"),
        ("probe", document.probe),
        ("scenario", document.scenario),
        ("symptom", document.symptom),
        ("repository", document.repository),
        ("good", f"{document.good.name} {document.good.title}".strip()),
        ("bad", f"{document.bad.name} {document.bad.title}".strip()),
        (f"{document.history}s in the range", f"{document.commits:,}"),
        ("asked confidence", numbers.percent(document.asked_confidence)),
        ("changes of commit", numbers.count(document.switches)),
        ("untestable in the contract timeline", f"{document.untestable:,}"),
    ]
    rows = tuple((Cell(name), Cell(value, code=True)) for name, value in settings if value)
    table = Table("What was searched, and how", (Column("setting"), Column("value")), rows)
    return Section("search", "Search", (table,))


def _case(document: BisectDocument) -> Case:
    outcome = CaseOutcome.PASSED if document.exit_code == 0 else CaseOutcome.ERROR
    found = document.culprit
    message = document.reason
    if found is not None:
        message = f"{document.verdict}: {found.name} {found.title}"
    detail = "" if document.attribution is None else document.attribution.text
    return Case("answer", outcome, message, detail, document.seconds)
