"""What is said of a search in a table or a paragraph, for the console and for Markdown alike."""

from __future__ import annotations

from poolbisect.evidence.intervals import wilson
from poolbisect.switches.finding import Answer, Finding, listed
from poolbisect.switches.launch import Launch, Role
from poolbisect.switches.workflow import ConfigReport, LaunchRecord

NONE = "-"
LAUNCH_HEADINGS = ("#", "on", "score (95 %)", "out of range r / w", "accept length", "verdict")
TABLE_HEADINGS = (
    "in flight", "score (95 %)", "out of range r / w", "last slot: requests", "verdict"
)  # fmt: skip

_HEADLINES = {
    Answer.SUSPECT_RANGE: "a range of suspects",
    Answer.ALL_OFF_BAD: "bad with everything off",
    Answer.ALL_ON_GOOD: "good with everything on",
    Answer.FLAKY: "not reproducible",
    Answer.INCONCLUSIVE: "inconclusive",
    Answer.UNTESTABLE: "not testable",
    Answer.INFRASTRUCTURE: "infrastructure failure",
    Answer.INTERRUPTED: "interrupted",
}


def subject(report: ConfigReport) -> str:
    """What was launched: the scenario's name and the subject's, or the command."""
    scenario = report.request.scenario
    return f"{scenario.name}, {report.request.subject}" if scenario else report.request.subject


def headline(finding: Finding) -> str:
    """The answer in a few words."""
    if finding.answer is Answer.CULPRIT:
        return (
            f"{listed(finding.culprit)} {'makes' if len(finding.culprit) == 1 else 'make'} it bad"
        )
    return _HEADLINES[finding.answer]


def configuration(launch: Launch, report: ConfigReport) -> str:
    """Which switches a launch had on, told by those on or those off, whichever are fewer."""
    every = [switch.name for switch in report.request.switches]
    on = [name for name in every if name in launch.request.on]
    off = [name for name in every if name not in launch.request.on]
    if not on:
        words = "none"
    elif not off:
        words = "all"
    elif len(off) < len(on):
        words = f"all but {', '.join(off)}"
    else:
        words = ", ".join(on)
    return f"{report.reference}: {words}" if launch.request.role is Role.REFERENCE else words


def score(launch: Launch) -> str:
    if launch.accuracy is None:
        return launch.ended.value.replace("_", " ") if launch.verdict is None else NONE
    interval = wilson(launch.correct, launch.asked)
    return f"{launch.accuracy:.3f} ({interval.low:.3f}-{interval.high:.3f})"


def accesses(launch: Launch) -> str:
    return NONE if launch.reads is None else f"{launch.reads} / {launch.writes}"


def accept_length(launch: Launch) -> str:
    return NONE if launch.accept_length is None else f"{launch.accept_length:.2f}"


def last_slot(launch: Launch) -> str:
    if launch.last_slot is None:
        return NONE
    return f"{launch.last_slot}: {launch.requests_on_last_slot}"


def launch_cells(number: int, record: LaunchRecord, report: ConfigReport) -> tuple[str, ...]:
    """The cells under LAUNCH_HEADINGS."""
    launch, decision = record.launch, record.decision
    return (
        str(number),
        configuration(launch, report),
        score(launch),
        accesses(launch),
        accept_length(launch),
        decision.verdict.value if decision else "compared with",
    )


def table_cells(report: ConfigReport) -> list[tuple[str, ...]]:
    """The cells under TABLE_HEADINGS, a row for each concurrency."""
    return [
        (
            str(row.concurrency),
            score(row.decision.launches[0]),
            accesses(row.decision.launches[0]),
            last_slot(row.decision.launches[0]),
            row.decision.verdict.value,
        )
        for row in report.table
    ]


def states_of(report: ConfigReport, names: tuple[str, ...]) -> list[str]:
    """For each switch named: its settings off and on."""
    return [
        f"{switch.name}: off {switch.words(False)}; on {switch.words(True)}"
        for switch in report.request.switches
        if switch.name in names
    ]


def evidence(report: ConfigReport) -> list[str]:
    """The confirmation, a sentence each."""
    confirmation = report.finding.confirmation
    if confirmation is None:
        return []
    lines = [f"second run: {confirmation.again.verdict}, {confirmation.again.reason}"]
    lines += [
        f"without {name}: {one.verdict}, {one.reason}" for name, one in confirmation.without.items()
    ]
    note = guard_note(report)
    return [*lines, note] if note else lines


def guard_note(report: ConfigReport) -> str:
    """Out-of-range accesses in launches whose score was good: the fault is there, unseen."""
    quiet = [
        record
        for record in report.launches
        if record.launch.request.role is Role.SUBJECT
        and (record.launch.reads or record.launch.writes)
        and record.decision is not None
        and record.decision.verdict.value == "good"
    ]
    if not quiet:
        return ""
    fewest = min(quiet, key=lambda record: len(record.launch.request.on))
    return (
        f"the guard saw {accesses(fewest.launch)} out-of-range reads and writes with "
        f"{configuration(fewest.launch, report)} on as well, where the score is good: the fault "
        "is in the memory there too, and only its effect needs the rest"
    )
