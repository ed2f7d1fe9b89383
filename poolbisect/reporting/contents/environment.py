"""What exactly ran, and the commands that run it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.reporting.documents.run import RunDocument
from poolbisect.reporting.model import Block, Cell, Column, Commands, Section, Table
from poolbisect.reporting.numbers import NONE
from poolbisect.scenario import scenario_names
from poolbisect.subject import parse_subject


def environment_section(document: RunDocument) -> Section:
    """Commands, versions, what differs between the subjects, and the scenario's settings."""
    lines = [command_line(document.command)] if document.command else []
    again = None if document.command else _again(document)
    if again is not None:
        lines.append(again)
    if document.report:
        lines.append(f"poolbisect report {shlex.quote(document.report)}")
    blocks: list[Block] = []
    if lines:
        label = "Commands: as it was run, and what is made of it"
        if again is not None:
            label = "Commands: to run it again, and what is made of it"
        blocks.append(Commands(label, tuple(lines)))
    if document.environment:
        blocks.append(settings_table("Environment", document.environment))
    blocks.append(_provenance(document))
    for name, settings in document.configuration.items():
        blocks.append(settings_table(f"Scenario: {name}", settings, folded=True))
    return Section("environment", "Environment and commands", tuple(blocks))


def command_line(arguments: Sequence[str]) -> str:
    """Arguments as one would type them."""
    return shlex.join(arguments)


def plain_environment(
    command: Sequence[str], environment: Mapping[str, Any], report: str
) -> Section | None:
    """The section of documents that hold a command and an environment, and nothing else."""
    blocks: list[Block] = []
    lines = [command_line(command)] if command else []
    if report:
        lines.append(f"poolbisect report {shlex.quote(report)}")
    if lines:
        blocks.append(Commands("Commands", tuple(lines)))
    if environment:
        blocks.append(settings_table("Environment", environment))
    if not blocks:
        return None
    return Section("environment", "Environment and commands", tuple(blocks))


def settings_table(caption: str, settings: Mapping[str, Any], *, folded: bool = False) -> Table:
    rows = tuple(
        (Cell(str(key), code=True), Cell(_value(value), code=True))
        for key, value in settings.items()
    )
    return Table(caption, (Column("setting"), Column("value")), rows, folded=folded)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _again(document: RunDocument) -> str | None:
    """The command of a run that was not started by one, None where it cannot be told from here:
    on a real server, from a scenario's file, or at a commit, which lies in some repository."""
    miniature = any("memory" in one.provenance for one in document.results)
    if not miniature or document.scenario not in scenario_names():
        return None
    try:
        subjects = [parse_subject(one.subject) for one in document.results]
    except UsageError:
        return None
    if any(subject.kind == "commit" for subject in subjects):
        return None
    words = ["poolbisect", "run", document.scenario]
    for result in document.results:
        if result.subject != document.reference or len(document.results) == 1:
            words += ["--subject", result.subject]
    if document.questions:
        words += ["--questions", str(document.questions)]
    provenance = next((one.provenance for one in document.results if one.provenance), {})
    for flag in ("memory", "device", "seed"):
        if flag in provenance:
            words += [f"--{flag}", str(provenance[flag])]
    return command_line(words)


def _provenance(document: RunDocument) -> Table:
    """A column a subject, the rows in the order in which they first turn up."""
    subjects = [one for one in document.results if one.provenance]
    keys = dict.fromkeys(key for one in subjects for key in one.provenance)
    return Table(
        "What exactly ran, by subject",
        (Column("fact"), *(Column(one.subject) for one in subjects)),
        tuple(
            (
                Cell(str(key), code=True),
                *(
                    Cell(_value(one.provenance[key]) if key in one.provenance else NONE, code=True)
                    for one in subjects
                ),
            )
            for key in keys
        ),
        folded=True,
    )
