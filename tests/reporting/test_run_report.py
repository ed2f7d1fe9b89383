"""What the report of a run says: verdict first, slots, memory, questions, trend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poolbisect.reporting.contents.questions import first_difference, marked
from poolbisect.reporting.contents.slots import slot_sums
from poolbisect.reporting.documents.answers import AnswerLine, read_answers
from poolbisect.reporting.documents.reading import read_document
from poolbisect.reporting.documents.run import RunDocument
from poolbisect.reporting.model import (
    CaseOutcome,
    Cell,
    Figure,
    Report,
    Section,
    Table,
    as_text,
)
from poolbisect.reporting.opening import report_of
from tests.reporting.conftest import MakeRun


def report(folder: Path) -> Report:
    return report_of(read_document(folder), folder)


def section(found: Report, name: str) -> Section:
    return next(one for one in found.sections if one.name == name)


def tables(one: Section) -> list[Table]:
    return [block for block in one.blocks if isinstance(block, Table)]


def figures(one: Section) -> list[Figure]:
    return [block for block in one.blocks if isinstance(block, Figure)]


def by_column(table: Table, row: tuple[Cell, ...]) -> dict[str, Cell]:
    return {column.label: cell for column, cell in zip(table.columns, row, strict=True)}


def test_the_verdict_comes_first_with_the_buffer_and_the_slot(real_run: Path) -> None:
    found = report(real_run)
    headline = as_text(found.headline)
    assert headline.startswith("original lost ")
    assert "req_to_hidden_states_pool is 1 row short, from request slot 64 on" in headline
    assert any("future.verified_id" in as_text(words) for words in found.summary)
    assert [one.name for one in found.sections][:4] == ["accuracy", "memory", "slots", "questions"]


def test_every_number_of_the_slots_adds_up(real_run: Path) -> None:
    document = read_document(real_run)
    assert isinstance(document, RunDocument)
    result = document.results[1]
    own, reference = (read_answers(real_run, name) for name in ("original", "corrected"))
    sums = slot_sums(own, reference, result)
    assert result.comparison is not None
    assert sum(one.lost for one in sums) == result.comparison.lost > 0
    assert sum(one.wrong for one in sums) == result.answered - result.correct
    assert sum(one.asked for one in sums) == result.answered
    assert all(sum(one.per_rank) == one.asked for one in sums)
    assert [one.slot for one in sums if one.outside] == [64]


def edited(folder: Path, **fields: object) -> Report:
    """The report of a run whose second subject has other fields."""
    path = folder / "result.json"
    document = json.loads(path.read_text())
    document["results"][1] |= fields
    path.write_text(json.dumps(document))
    return report(folder)


def test_a_crash_is_told_as_one_and_its_lost_questions_are_no_failures(make_run: MakeRun) -> None:
    folder = make_run(lost=30)
    lines = [json.loads(line) for line in (folder / "original.jsonl").read_text().splitlines()]
    for line in lines[5:]:
        line |= {"correct": False, "outcome": "unanswered"}
    (folder / "original.jsonl").write_text("\n".join(map(json.dumps, lines)))
    crashed = {"ended": "crashed", "detail": "IndexError: 8", "reason": "crashed: IndexError: 8"}
    found = edited(folder, **crashed, comparison=None, accuracy=None, answered=5, attribution="")
    assert as_text(found.headline).startswith("original: crashed: IndexError: 8: req_to_hidden_")
    facts = {fact.label: (fact.value, fact.note) for fact in found.facts}
    assert facts["original"] == ("crashed", "after 5 of 40 questions")
    assert "slots" not in [one.name for one in found.sections]
    words = [as_text(one.words) for one in section(found, "memory").blocks if hasattr(one, "words")]
    assert "original: no access outside a buffer was recorded before it ended" in words[1]


def test_a_fall_of_accept_length_is_not_called_one_of_accuracy(make_run: MakeRun) -> None:
    folder = make_run(lost=0)
    reason = "the accept length of 15 questions fell and of 0 rose"
    found = edited(folder, reason=reason, contract=[], accept_length=3.1)
    assert as_text(found.headline) == f"original: {reason}."
    assert ("accept length", "3.10") in [(fact.label, fact.value) for fact in found.facts]
    assert not figures(section(found, "slots"))
    assert "0 of 40 questions (0 %) were lost" in as_text(
        section(found, "slots").blocks[0].words  # type: ignore[union-attr]
    )


def test_unanswered_questions_are_on_no_slot(make_run: MakeRun) -> None:
    folder = make_run(asked=16, lost=4)
    own, reference = (read_answers(folder, name) for name in ("original", "corrected"))
    document = read_document(folder)
    assert isinstance(document, RunDocument)
    own[0] = AnswerLine(id=0, correct=False, outcome="unanswered", rank=0, slot=1)
    sums = slot_sums(own, reference, document.results[1])
    assert sum(one.asked for one in sums) == 15
    assert sum(one.lost for one in sums) == 3


def test_the_arena_is_mapped_around_the_short_buffer(real_run: Path) -> None:
    document = read_document(real_run)
    assert isinstance(document, RunDocument)
    arena = document.results[1].out_of_range.arena
    names = [placed.name for placed in arena]
    at = names.index("req_to_hidden_states_pool")
    assert names[at + 1] == "future.verified_id"
    short, hit = arena[at], arena[at + 1]
    row = short.bytes // short.rows
    assert short.offset + 64 * row == hit.offset  # row 64 starts where the neighbour does
    assert [placed.offset for placed in arena] == sorted(placed.offset for placed in arena)
    assert document.results[0].out_of_range.arena == ()
    (drawn,) = figures(section(report(real_run), "memory"))
    assert "which belong to future.verified_id" in drawn.chart.description


def test_a_discordant_question_shows_both_answers_and_where_they_part(make_run: MakeRun) -> None:
    folder = make_run(asked=6, lost=1, text="1+1=2;2+2=4", wrong="1+1=2;2+3=5")
    (table,) = tables(section(report(folder), "questions"))
    (row,) = table.rows
    cells = by_column(table, row)
    assert cells["change"].text == "lost"
    left, right = cells["answer of corrected"].marked, cells["answer of original"].marked
    assert left is not None
    assert right is not None
    assert (left.before, left.mark, left.after) == ("1+1=2;2+", "2", "=4")
    assert (right.before, right.mark, right.after) == ("1+1=2;2+", "3", "=5")
    assert cells["first difference"].text == "token 9"


def answer(text: str, tokens: tuple[int, ...] = ()) -> AnswerLine:
    return AnswerLine(id=0, correct=True, text=text, tokens=tokens)


def test_an_answer_that_stops_early_is_marked_at_its_end() -> None:
    assert first_difference(answer("12", (1, 2)), answer("123", (1, 2, 3))) == (2, 2)
    assert marked(answer("12", (1, 2)), 2).mark == ""
    assert marked(answer("123", (1, 2, 3)), 2).mark == "3"


def test_without_tokens_the_word_that_differs_is_marked() -> None:
    one, other = answer("the answer is 144 apples"), answer("the answer is 145 apples")
    character, token = first_difference(one, other)
    assert (character, token) == (16, None)
    assert marked(one, character).mark == "144"


def test_a_long_answer_is_shown_around_the_difference() -> None:
    long = answer("a" * 5000 + "X" + "b" * 5000, tuple(range(10001)))
    shown = marked(long, 5000)
    assert shown.mark == "X"
    assert shown.before.startswith("… ")
    assert shown.after.endswith(" …")
    assert len(shown.before + shown.mark + shown.after) < 500


def test_a_damaged_answers_file_is_named_and_the_rest_shown(make_run: MakeRun) -> None:
    folder = make_run()
    path = folder / "original.jsonl"
    path.write_text(path.read_text() + '{"id": 7, "corr')
    found = report(folder)
    words = as_text(section(found, "not-shown").blocks[0].words)  # type: ignore[union-attr]
    assert "original.jsonl:41" in words
    names = [one.name for one in found.sections]
    assert "accuracy" in names
    assert "slots" not in names


def test_a_missing_answers_file_is_named(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "corrected.jsonl").unlink()
    words = as_text(section(report(folder), "not-shown").blocks[0].words)  # type: ignore[union-attr]
    assert "corrected.jsonl is missing" in words


def test_a_subject_that_no_file_can_be_named_after_is_named(make_run: MakeRun) -> None:
    folder = make_run()
    path = folder / "result.json"
    document = json.loads(path.read_text())
    for at, name in enumerate(["no\x00body", "../" * 400]):
        document["results"][1 - at]["subject"] = name
    path.write_text(json.dumps(document))
    words = [as_text(one.words) for one in section(report(folder), "not-shown").blocks]  # type: ignore[union-attr]
    assert len(words) == 2


def test_the_trend_holds_earlier_runs_over_as_many_questions(make_run: MakeRun) -> None:
    for day in range(1, 5):
        make_run(name=f"2026010{day}", started=f"2026-01-0{day}T00:00:00+00:00", lost=day)
    make_run(name="20260105", asked=80, started="2026-01-05T00:00:00+00:00")
    later = make_run(name="20260107", started="2026-01-07T00:00:00+00:00")
    middle = make_run(name="20260106", started="2026-01-06T00:00:00+00:00", lost=9)
    (later.parent / "20260101" / "result.json").write_text('{"schema": "poolbisect.run/1", ')
    trend = section(report(middle), "trend")
    (chart, _) = (figure.chart for figure in figures(trend))
    assert chart.description.startswith("4 runs from 2026-01-02 to 2026-01-06")
    (table,) = tables(trend)
    assert len(table.rows) == 8
    assert table.rows[0][0].text.startswith("2026-01-06")


def test_the_baseline_band_is_the_recorded_one(make_run: MakeRun) -> None:
    folder = make_run()
    path = folder / "result.json"
    document = json.loads(path.read_text())
    document["results"][0]["baseline_score"] = {
        "name": "miniature",
        "mean": 0.7794,
        "spread": 0.011,
        "spread_kind": "run-to-run",
        "gate": 0.765,
        "gate_strict": True,
    }
    path.write_text(json.dumps(document))
    (table,) = tables(section(report(folder), "accuracy"))
    chart = next(cell.chart for cell in table.rows[0] if cell.chart)
    hints = [shape.hint for shape in chart.shapes]
    assert "baseline 0.757–0.801" in hints  # noqa: RUF001
    assert "gate 0.765" in hints
    note = as_text(section(report(folder), "accuracy").blocks[1].words)  # type: ignore[union-attr]
    assert "its gate, > 0.765" in note


def test_a_real_run_keeps_its_baseline_command_and_environment(real_run: Path) -> None:
    document = read_document(real_run)
    assert isinstance(document, RunDocument)
    assert document.command == ("poolbisect", "run", "mimo-canary", "--questions", "200")
    assert {"poolbisect", "python", "torch", "machine"} <= set(document.environment)
    assert document.results[0].baseline_score is None  # none is recorded for 200 questions


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"verdict": "bad", "as_expected": True, "expected": "bad"}, CaseOutcome.PASSED),
        ({"verdict": "bad", "as_expected": None, "expected": None}, CaseOutcome.FAILED),
        ({"verdict": "good", "as_expected": False, "expected": "bad"}, CaseOutcome.FAILED),
        ({"verdict": "unknown", "as_expected": None, "expected": None}, CaseOutcome.ERROR),
        ({"verdict": "untestable", "ended": "infra", "expected": None}, CaseOutcome.ERROR),
    ],
)
def test_a_case_passes_only_if_the_command_would(
    fields: dict[str, object], outcome: CaseOutcome, make_run: MakeRun
) -> None:
    folder = make_run()
    path = folder / "result.json"
    document = json.loads(path.read_text())
    document["results"][1] |= {"as_expected": None} | fields
    path.write_text(json.dumps(document))
    assert report(folder).cases[1].outcome is outcome
