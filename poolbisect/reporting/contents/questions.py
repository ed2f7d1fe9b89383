"""Discordant questions: right on one side only, with both answers and where they part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from poolbisect.reporting import numbers
from poolbisect.reporting.documents.answers import AnswerLine
from poolbisect.reporting.documents.run import Result, RunDocument
from poolbisect.reporting.model import (
    Block,
    Cell,
    Column,
    Marked,
    Prose,
    Section,
    Table,
    Tone,
    in_words,
)

Answers = Mapping[int, AnswerLine]

LONGEST = 400
"""Characters of an answer that are shown; of longer ones, those around the difference."""
BUDGET = 500_000
"""Characters of answers that a report carries in all; the rest stays in the JSONL files."""


def questions_section(document: RunDocument, answers: Mapping[str, Answers]) -> Section | None:
    """None where no subject was compared question by question."""
    reference = answers.get(document.reference, {})
    blocks: list[Block] = []
    budget = BUDGET
    for result in document.results:
        own, paired = answers.get(result.subject, {}), result.comparison
        if paired is None or not own or not reference:
            continue
        if not paired.lost_ids and not paired.gained_ids:
            blocks.append(
                Prose((f"{result.subject}: no question changed between right and wrong.",))
            )
            continue
        table, budget, left = _table(result, own, reference, document.reference, budget)
        blocks.append(table)
        if left:
            words = f"{left:,} more are in {document.reference}.jsonl and {result.subject}.jsonl."
            blocks.append(Prose(in_words(words), Tone.WARNING))
    return Section("questions", "Discordant questions", tuple(blocks)) if blocks else None


def first_difference(one: AnswerLine, other: AnswerLine) -> tuple[int, int | None]:
    """Where two answers part: the character, and the token where tokens are known (from 0)."""
    character = _parting(one.text, other.text)
    if not one.tokens or not other.tokens:
        return character, None
    return character, _parting(one.tokens, other.tokens)


def _parting(one: Sequence[object], other: Sequence[object]) -> int:
    pairs = enumerate(zip_longest(one, other))
    return next((at for at, (left, right) in pairs if left != right), len(one))


def marked(answer: AnswerLine, character: int) -> Marked:
    """The answer with its token at `character` marked, cut to what can be shown around it.

    A token is one character where there are as many tokens as characters; otherwise the word that
    the character is in stands for it.
    """
    text = answer.text
    start = end = min(character, len(text))
    if start < len(text):
        end = start + 1
        if abs(len(answer.tokens) - len(text)) > 1:
            while start > 0 and not text[start - 1].isspace() and end - start < 40:
                start -= 1
            while end < len(text) and not text[end].isspace() and end - start < 40:
                end += 1
    low, high = 0, len(text)
    if len(text) > LONGEST:
        low = max(0, start - LONGEST // 2)
        high = min(len(text), low + LONGEST)
    before, after = text[low:start], text[end:high]
    return Marked(
        ("… " if low else "") + before, text[start:end], after + (" …" if high < len(text) else "")
    )


def _table(
    result: Result, own: Answers, reference: Answers, reference_name: str, budget: int
) -> tuple[Table, int, int]:
    """The table, the characters left of `budget`, and how many questions it had no room for."""
    paired = result.comparison
    assert paired is not None
    offenders = set(result.out_of_range.offenders)
    victims = set(result.out_of_range.victims)
    rows: list[tuple[Cell, ...]] = []
    left = 0
    changes = [(number, "lost") for number in paired.lost_ids]
    changes += [(number, "gained") for number in paired.gained_ids]
    for number, change in sorted(changes):
        one, other = own.get(number), reference.get(number)
        if one is None or other is None:
            continue
        size = min(LONGEST, len(one.text)) + min(LONGEST, len(other.text))
        size += min(LONGEST, len(one.prompt))
        if budget < size:
            left += 1
            continue
        budget -= size
        character, token = first_difference(one, other)
        memory = numbers.NONE
        if number in offenders:
            memory = "ran outside"
        elif number in victims:
            memory = "overwritten"
        rows.append(
            (
                Cell(f"{number}", sort=number),
                Cell(change, tone=Tone.BAD if change == "lost" else Tone.GOOD),
                Cell(_cut(one.prompt), code=True),
                Cell("" if one.expected is None else _cut(str(one.expected)), code=True),
                Cell(marked=marked(other, character)),
                Cell(marked=marked(one, character)),
                Cell(
                    f"token {token + 1}" if token is not None else f"character {character + 1}",
                    sort=character if token is None else token,
                ),
                Cell(f"{one.rank} / {one.slot}", sort=one.slot),
                Cell(memory),
            )
        )
    table = Table(
        f"Right on one side only: {reference_name} against {result.subject}",
        (
            Column("question", numeric=True),
            Column("change"),
            Column("prompt"),
            Column("expected"),
            Column(f"answer of {reference_name}"),
            Column(f"answer of {result.subject}"),
            Column("first difference", numeric=True),
            Column("rank / slot", numeric=True),
            Column("its memory"),
        ),
        tuple(rows),
        filtered=True,
    )
    return table, budget, left


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
