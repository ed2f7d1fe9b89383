"""What exactly ran, and the commands that run it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from poolbisect.reporting.documents.run import RunDocument
from poolbisect.reporting.model import Block, Cell, Column, Commands, Section, Table
from poolbisect.reporting.numbers import NONE


def environment_section(document: RunDocument) -> Section:
    """Commands, versions, what differs between the subjects, and the scenario's settings."""
    lines = [command_line(document.command)] if document.command else []
    again = _again(document)
    if again not in lines:
        lines.append(again)
    if document.report:
        lines.append(f"poolbisect report {shlex.quote(document.report)}")
    blocks: list[Block] = [Commands("Commands: as it was run, or again", tuple(lines))]
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


def _again(document: RunDocument) -> str:
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
