"""What the reports of a bisect, a timeline and a night say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poolbisect.reporting.documents.reading import read_document
from poolbisect.reporting.model import CaseOutcome, Figure, Prose, Report, Table, Tone, as_text
from poolbisect.reporting.opening import report_of
from tests.reporting.conftest import bisect_document, entry, night_document, write_document


def report(folder: Path, document: dict[str, Any]) -> Report:
    write_document(folder, document)
    return report_of(read_document(folder), folder)


def blocks(found: Report, name: str) -> tuple[Any, ...]:
    return next(one for one in found.sections if one.name == name).blocks


def test_a_bisect_names_the_commit_first_then_the_line(tmp_path: Path) -> None:
    found = report(tmp_path / "1", bisect_document())
    assert as_text(found.headline) == "0505050505 introduced it: reserve row 0"
    summary = " ".join(as_text(words) for words in found.summary)
    assert "srt/speculative/worker.py:150" in summary
    assert "The line stands since 0101010101 wrote the line." in summary
    assert "before it good, itself bad, the newer end without it not tried" in summary
    facts = {fact.label: fact.value for fact in found.facts}
    assert facts["confidence"] == "99.6 %"
    assert facts["commits searched"] == "16"


def test_the_funnel_has_every_step_with_what_it_left(tmp_path: Path) -> None:
    found = report(tmp_path / "1", bisect_document(scored=True))
    figure, table = blocks(found, "funnel")
    assert isinstance(figure, Figure)
    assert isinstance(table, Table)
    left = [column.label for column in table.columns].index("commits left")
    assert [row[left].text for row in table.rows] == ["15", "15", "8", "4", "2", "1"]
    score = [column.label for column in table.columns].index("score (95 % interval)")
    assert table.rows[0][score].text.startswith("0.776 (0.753")
    open_ranges = [shape for shape in figure.chart.shapes if shape.css == "open"]
    widths = [shape.width for shape in open_ranges]  # type: ignore[union-attr]
    assert widths == sorted(widths, reverse=True)
    assert len(widths) == 6


def test_the_posterior_marks_the_likeliest(tmp_path: Path) -> None:
    found = report(tmp_path / "1", bisect_document())
    figure, table = blocks(found, "posterior")
    assert "likeliest is 0505050505 with 99.60 %" in figure.chart.description
    assert [row[-1].text for row in table.rows] == ["0.4 %", "99.6 %"]


def test_a_suspect_range_is_no_culprit(tmp_path: Path) -> None:
    document = bisect_document() | {
        "verdict": "suspect_range",
        "exit_code": 4,
        "culprit": None,
        "confirmation": None,
        "attribution": None,
        "reason": "three commits cannot be tested",
        "suspects": [entry(4), entry(5), entry(6)],
    }
    found = report(tmp_path / "1", document)
    assert as_text(found.headline) == "It lies in 3 commits, 0404040404 to 0606060606."
    assert found.tone is Tone.WARNING
    assert found.cases[0].outcome is CaseOutcome.ERROR
    assert len(blocks(found, "suspects")[0].rows) == 3


def test_a_first_fix_is_called_a_fix(tmp_path: Path) -> None:
    found = report(tmp_path / "1", bisect_document() | {"find": "fixed"})
    assert found.verdict == "fix found"
    assert as_text(found.headline).startswith("0505050505 fixed it")


def test_an_interrupted_bisect_without_any_step(tmp_path: Path) -> None:
    document = bisect_document() | {
        "verdict": "interrupted",
        "exit_code": 130,
        "culprit": None,
        "confidence": None,
        "switches": None,
        "probes": 0,
        "confirmation": None,
        "attribution": None,
        "steps": [],
        "posterior": [],
        "reason": "interrupted; go on with --resume",
    }
    found = report(tmp_path / "1", document)
    assert as_text(found.headline) == "Interrupted; go on with --resume."
    assert found.cases[0].outcome is CaseOutcome.ERROR


def test_releases_are_named_by_version(tmp_path: Path) -> None:
    document = bisect_document() | {"history": "release"}
    version = {"release": "0.5.11", "short": "0.5.11", "title": "", "date": None}
    document["culprit"] = version | {"remark": None}
    found = report(tmp_path / "1", document)
    assert as_text(found.headline) == "0.5.11 introduced it."


def test_a_timeline_lists_its_transitions(tmp_path: Path) -> None:
    document = {
        "schema": "poolbisect.timeline/1",
        "history": "commit",
        "good": "aa" * 20,
        "bad": "bb" * 20,
        "commits": 107,
        "probed": 10,
        "untestable": 1,
        "untestable_reasons": [{"commit": "cc" * 20, "reason": "ran out of time"}],
        "seconds": 3.0,
        "pools": [],
        "transitions": bisect_document()["transitions"],
    }
    found = report(tmp_path / "1", document)
    assert "1 introduced; the last at 050505050505" in as_text(found.headline)
    assert blocks(found, "transitions")[0].rows[0][2].text == "introduced"
    assert "ran out of time" in blocks(found, "untestable")[0].rows[0][1].text


def test_a_night_says_what_is_new_and_who_did_it(tmp_path: Path) -> None:
    found = report(tmp_path / "nightly" / "1", night_document())
    headline = as_text(found.headline)
    assert headline == "New: original on mimo-canary fell by 5.6 points; 0505050505 did it."
    assert found.cases[0].outcome is CaseOutcome.FAILED
    series = blocks(found, "series")[0]
    assert series.rows[0][0].link == "./../../mimo-canary/1/report.html"
    assert blocks(found, "gates")[0].tone is Tone.WARNING


def test_persistent_and_fixed_nights(tmp_path: Path) -> None:
    stays = report(tmp_path / "nightly" / "1", night_document(state="persistent"))
    assert as_text(stays.headline).startswith("Nothing new; 1 regression still there")
    assert stays.tone is Tone.BAD
    mended = report(tmp_path / "nightly" / "2", night_document(state="fixed", accuracy=0.776))
    assert as_text(mended.headline).startswith("Fixed: original on mimo-canary")
    assert [one.outcome for one in mended.cases] == [CaseOutcome.PASSED]
    healthy = report(tmp_path / "nightly" / "3", night_document(state=None, accuracy=0.776))
    assert as_text(healthy.headline).startswith("Nothing is wrong: 1 series measured")


def undecided_night(**more: Any) -> dict[str, Any]:
    document = night_document(state=None) | {"verdict": "inconclusive", "exit_code": 4}
    reason = "too few questions for a drop of 2.0 points; about 1039 questions would do"
    document["rows"][0] |= {"verdict": "unknown", "reason": reason} | more
    return document


def test_an_inconclusive_night_says_why_and_what_would_do(tmp_path: Path) -> None:
    found = report(tmp_path / "nightly" / "1", undecided_night())
    why = "corrected on mimo-canary is unknown: too few questions for a drop of 2.0 points; "
    why += "about 1039 questions would do."
    assert as_text(found.headline) == f"The night is inconclusive: {why}"
    prose = [one for one in blocks(found, "series") if isinstance(one, Prose)]
    assert why in [as_text(one.words) for one in prose]
    silent = report(tmp_path / "nightly" / "2", undecided_night(reason=""))
    assert as_text(silent.headline).endswith("corrected on mimo-canary is unknown.")


def test_a_first_night_without_a_gate_claims_nothing_of_drift_or_gates(tmp_path: Path) -> None:
    first = night_document(state=None) | {"gate_health": []}
    first["rows"][0] |= {"nights": 0, "mean7": None, "gate": None, "baseline": None}
    found = report(tmp_path / "nightly" / "1", first)
    assert "no night before to compare with" in as_text(found.headline)
    assert "Too few nights to tell" in as_text(blocks(found, "drift")[0].words)
    assert "No series of this night has a gate" in as_text(blocks(found, "gates")[0].words)
    later = night_document(state=None) | {"gate_health": []}
    later["rows"][0] |= {"trend": "steady"}
    found = report(tmp_path / "nightly" / "2", later)
    assert as_text(blocks(found, "drift")[0].words) == "No series drifts."
    assert as_text(blocks(found, "gates")[0].words) == "Every gate is of use."


def test_a_night_is_drawn_with_the_nights_before_it(tmp_path: Path) -> None:
    for night, (state, accuracy) in enumerate([(None, 0.776), ("new", 0.72), (None, 0.776)], 1):
        document = night_document(f"2026-06-0{night}T02:00:00.000+00:00", state, accuracy)
        write_document(tmp_path / "nightly" / str(night), document)
    second = tmp_path / "nightly" / "2"
    found = report_of(read_document(second), second)
    (figure, table) = blocks(found, "trend")
    assert figure.chart.description.startswith("2 runs from 2026-06-01 to 2026-06-02")
    assert len(table.rows) == 2


def test_a_link_that_leads_away_is_not_made(tmp_path: Path) -> None:
    for at, address in enumerate(["javascript:alert(1)", "/etc", "https://example.org/x"]):
        document = night_document()
        document["rows"][0]["report"] = address
        found = report(tmp_path / f"{at}", document)
        assert blocks(found, "series")[0].rows[0][0].link is None
