"""GitHub-flavoured Markdown for step summaries: kept under a size by leaving sections out."""

from __future__ import annotations

import html
import re

from poolbisect.reporting.model import (
    Block,
    Cell,
    Code,
    Commands,
    Fact,
    Facts,
    Figure,
    Prose,
    Report,
    Section,
    Table,
    Tone,
    Words,
    in_words,
)
from poolbisect.reporting.numbers import moment, seconds
from poolbisect.reporting.rendering.visible import one_line

STEP_SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a GitHub step summary."""
MOST_ROWS = 40
_SIGNS = {Tone.GOOD: "✅ ", Tone.BAD: "❌ ", Tone.WARNING: "⚠️ ", Tone.PLAIN: ""}
_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&@:])")


def markdown(report: Report, limit: int = STEP_SUMMARY_LIMIT) -> str:
    """The report in at most `limit` bytes of UTF-8.

    What does not fit is left out by whole sections from the end on, and a line says which. A
    limit too small for the head leaves out its paragraphs, the verdict last; only one too small
    for the verdict's line cuts into that.
    """
    parts = [_head(report), *(_section(section) for section in report.sections)]
    sizes = [len(part.encode()) + 1 for part in parts]
    if sum(sizes) <= limit:
        return "\n".join(parts)
    for kept in range(len(parts) - 1, 0, -1):
        titles = ", ".join(section.title for section in report.sections[kept - 1 :])
        line = f"_Left out to stay under {limit:,} bytes: {escaped(titles)}._\n"
        if sum(sizes[:kept]) + len(line.encode()) + 1 <= limit:
            return "\n".join([*parts[:kept], line])
    line = f"_Cut to {limit:,} bytes._\n"
    room = max(0, limit - len(line.encode()) - 2)
    kept_head, *others = _head_parts(report)
    if len(kept_head.encode()) > room:
        kept_head = kept_head.encode()[:room].decode(errors="ignore").rstrip("\\")
        others = []
    for part in others:
        if len(f"{kept_head}\n\n{part}".encode()) > room:
            break
        kept_head += f"\n\n{part}"
    return (kept_head + "\n\n" + line).encode()[:limit].decode(errors="ignore")


def escaped(text: str) -> str:
    """Prose without anything that Markdown or HTML would act on; no mention reaches anybody."""
    text = _MEANS_SOMETHING.sub(r"\\\1", one_line(text))
    text = text.replace("\\@", "@\u2060").replace("\\&", "&amp;")
    return (
        text.replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
        .replace("\\:", ":")
        .replace("://", ":\u2060//")
    )


def code(text: str) -> str:
    """A code span of any text; also inside a table."""
    text = one_line(text)
    if not text:
        return ""
    runs = [len(run) for run in re.findall("`+", text)]
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _head(report: Report) -> str:
    return "\n\n".join(_head_parts(report)) + "\n"


def _head_parts(report: Report) -> list[str]:
    """The paragraphs above the sections, the line of the verdict first."""
    parts = [f"# {_SIGNS[report.tone]}{escaped(report.name)}: {escaped(report.verdict)}"]
    if report.headline:
        parts.append(f"**{_words(report.headline)}**")
    parts += [_words(words) for words in report.summary]
    if report.facts:
        rows = [f"| {escaped(fact.label)} | {_fact(fact)} |" for fact in report.facts]
        parts.append("\n".join(["| | |", "|---|---|", *rows]))
    when = f"{moment(report.started)}, " if report.started else ""
    parts.append(escaped(f"{when}{seconds(report.seconds)}, exit code {report.exit_code}."))
    return parts


def _fact(fact: Fact) -> str:
    value = code(fact.value) if fact.code else f"**{escaped(fact.value)}**"
    return (
        f"{value} {escaped(fact.note)}".replace("|", "\\|")
        if fact.code
        else (f"{value} {escaped(fact.note)}".strip())
    )


def _section(section: Section) -> str:
    lines = [f"## {escaped(section.title)}", ""]
    for block in section.blocks:
        lines += [*_block(block), ""]
    return "\n".join(lines)


def _block(block: Block) -> list[str]:
    match block:
        case Prose():
            return [_SIGNS[block.tone] + _words(block.words)]
        case Figure():
            return [_words(in_words(block.chart.description))]
        case Facts():
            return [f"* {escaped(fact.label)}: {_fact(fact)}" for fact in block.items]
        case Commands():
            fence = "`" * max(
                3, 1 + max(map(len, re.findall("`+", "".join(block.lines))), default=0)
            )
            return [fence + "console", *map(one_line, block.lines), fence]
        case Table():
            return _table(block)


def _table(table: Table) -> list[str]:
    shown = [
        at
        for at, _ in enumerate(table.columns)
        if not table.rows or _has_text([row[at] for row in table.rows])
    ]
    columns = [table.columns[at] for at in shown]
    lines = [
        "| " + " | ".join(escaped(column.label) for column in columns) + " |",
        "|" + "|".join("---:" if column.numeric else "---" for column in columns) + "|",
    ]
    for row in table.rows[:MOST_ROWS]:
        lines.append("| " + " | ".join(_cell(row[at]) for at in shown) + " |")
    if len(table.rows) > MOST_ROWS:
        left = len(table.rows) - MOST_ROWS
        lines += ["", f"_and {left:,} more; the HTML report has all._"]
    caption = f"**{escaped(table.caption)}**"
    if table.folded:
        summary = html.escape(one_line(table.caption)).replace("@", "@\u2060")
        return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>"]
    return [caption, "", *lines]


def _has_text(column: list[Cell]) -> bool:
    """Whether a column is there without pictures; beside a picture its numbers are in another."""
    return any(cell.text or cell.marked is not None for cell in column) and not any(
        cell.chart is not None for cell in column
    )


def _cell(cell: Cell) -> str:
    if cell.marked is not None:
        whole = cell.marked.before + "⟦" + cell.marked.mark + "⟧" + cell.marked.after
        return code(whole).replace("|", "\\|")
    words = code(cell.text).replace("|", "\\|") if cell.code else escaped(cell.text)
    return _SIGNS[cell.tone] + words


def _words(words: Words) -> str:
    return "".join(code(word.text) if isinstance(word, Code) else _spaced(word) for word in words)


def _spaced(prose: str) -> str:
    """Escaped prose that keeps the spaces at its ends, which join it to what is beside it."""
    text = escaped(prose)
    start = " " if prose[:1].isspace() and text else ""
    return start + text + (" " if prose[-1:].isspace() else "")
