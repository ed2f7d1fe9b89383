"""Failures by request slot: where the questions that were lost ran."""

from __future__ import annotations

from collections.abc import Mapping

from poolbisect.reporting import numbers
from poolbisect.reporting.charts.slots import SlotSum, slots_chart
from poolbisect.reporting.documents.answers import AnswerLine
from poolbisect.reporting.documents.run import Result, RunDocument
from poolbisect.reporting.model import (
    Block,
    Cell,
    Column,
    Figure,
    Prose,
    Section,
    Table,
    Tone,
    in_words,
)

Answers = Mapping[int, AnswerLine]


def slots_section(document: RunDocument, answers: Mapping[str, Answers]) -> Section | None:
    """None without a subject that was compared, and the answers of both with their slots."""
    reference = answers.get(document.reference, {})
    blocks: list[Block] = []
    for result in document.results:
        own = answers.get(result.subject, {})
        if result.comparison is None or not own or not reference:
            continue
        sums = slot_sums(own, reference, result)
        if not sums:
            continue
        if any(one.lost for one in sums):
            caption = (
                f"Bars: the share of each slot's questions that {document.reference} answered "
                f"rightly and {result.subject} did not, all ranks together."
            )
            chart = slots_chart(sums, result.subject, document.reference)
            blocks.append(Figure(chart, caption))
        blocks.append(Prose(in_words(_words(sums, result))))
        blocks.append(_table(sums, own, reference, result.subject, document.reference))
    return Section("slots", "Failures by request slot", tuple(blocks)) if blocks else None


def slot_sums(own: Answers, reference: Answers, result: Result) -> list[SlotSum]:
    """One entry a slot, in order of slots, over the answered questions that had one."""
    first = min(
        (one.short_from for one in result.contract if one.short_from is not None), default=None
    )
    reached = {one.index for one in result.out_of_range.buffers if one.space == "request slot"}
    ranks = 1 + max((one.rank or 0 for one in own.values()), default=0)
    sums: dict[int, list[int]] = {}
    per_rank: dict[int, list[int]] = {}
    for number, answer in own.items():
        if answer.slot is None or not answer.answered:
            continue
        tally = sums.setdefault(answer.slot, [0, 0, 0])
        tally[0] += 1
        tally[1] += not answer.correct
        other = reference.get(number)
        tally[2] += other is not None and other.correct and not answer.correct
        per_rank.setdefault(answer.slot, [0] * ranks)[answer.rank or 0] += 1
    return [
        SlotSum(
            slot,
            asked,
            wrong,
            lost,
            outside=slot in reached or (first is not None and slot >= first),
            per_rank=tuple(per_rank[slot]),
        )
        for slot, (asked, wrong, lost) in sorted(sums.items())
    ]


def _words(sums: list[SlotSum], result: Result) -> str:
    outside = [one for one in sums if one.outside]
    inside = [one for one in sums if not one.outside]
    words = [
        f"{result.subject}: on slots that every buffer has a row for, {_share(inside)} were lost."
        if inside
        else f"{result.subject}: no slot has a row in every buffer."
    ]
    if outside:
        slots = f"slot {outside[0].slot}"
        if len(outside) > 1:
            slots = f"slots {outside[0].slot} to {outside[-1].slot}"
        words.append(f"On {slots}, which a short buffer has no row for, {_share(outside)}.")
        if inside and 2 * _rate(outside) < _rate(inside):
            words.append(
                "Those requests come off better: each finds again what it wrote past the end, and "
                "the harm is done to whoever owns those bytes."
            )
    elif result.last_slot is not None and not any(one.missing_rows for one in result.contract):
        words.append(f"The last slot, {result.last_slot}, has a row in every buffer.")
    if result.last_slot is not None and not result.last_slot_used:
        words.append(
            f"The last slot, {result.last_slot}, was not handed out on every rank, so nothing is "
            "proven about it."
        )
    return " ".join(words)


def _rate(sums: list[SlotSum]) -> float:
    return sum(one.lost for one in sums) / max(1, sum(one.asked for one in sums))


def _share(sums: list[SlotSum]) -> str:
    lost, asked = sum(one.lost for one in sums), sum(one.asked for one in sums)
    return f"{lost:,} of {asked:,} questions ({numbers.percent(lost / asked if asked else None)})"


def _table(
    sums: list[SlotSum], own: Answers, reference: Answers, subject: str, reference_name: str
) -> Table:
    on_reference: dict[int, list[int]] = {}
    for answer in reference.values():
        if answer.slot is not None and answer.answered:
            tally = on_reference.setdefault(answer.slot, [0, 0])
            tally[0] += 1
            tally[1] += not answer.correct
    ranks = len(sums[0].per_rank)

    def row(one: SlotSum) -> tuple[Cell, ...]:
        asked, wrong = on_reference.get(one.slot, [0, 0])
        return (
            Cell(f"{one.slot}", sort=one.slot),
            *(Cell(f"{one.per_rank[rank]}") for rank in range(ranks if ranks > 1 else 0)),
            Cell(f"{one.asked}"),
            Cell(f"{one.wrong}"),
            Cell(f"{one.lost}"),
            Cell(numbers.percent(one.lost / one.asked), sort=one.lost / one.asked),
            Cell(f"{wrong} of {asked}", sort=wrong / asked if asked else -1),
            Cell(
                "no row" if one.outside else "has a row",
                tone=Tone.BAD if one.outside else Tone.PLAIN,
            ),
        )

    return Table(
        f"Questions by request slot, {subject} against {reference_name}",
        (
            Column("slot", numeric=True),
            *(Column(f"rank {rank}", numeric=True) for rank in range(ranks if ranks > 1 else 0)),
            Column("questions", numeric=True),
            Column("wrong", numeric=True),
            Column("lost", numeric=True),
            Column("share lost", numeric=True),
            Column(f"{reference_name}: wrong on its slot", numeric=True),
            Column("short buffer"),
        ),
        tuple(row(one) for one in sums),
        filtered=True,
        folded=True,
    )
