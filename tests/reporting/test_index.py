"""The index over all runs: everything that can be read, and the rest named."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolbisect.errors import UsageError
from poolbisect.reporting.contents.overview import listed_runs
from poolbisect.reporting.index import write_index
from tests.reporting.conftest import MakeRun, bisect_document, night_document, write_document


def test_every_kind_is_listed_newest_first(make_run: MakeRun, tmp_path: Path) -> None:
    make_run()
    reports = tmp_path / "reports"
    write_document(reports / "bisect" / "1", bisect_document())
    write_document(reports / "nightly" / "1", night_document("2026-07-01T00:00:00.000+00:00"))
    found, faults = listed_runs(reports)
    assert faults == []
    assert [one.kind for one in found] == ["night", "bisect", "run"]
    (reports / "bisect" / "1" / "attempts" / "0001").mkdir(parents=True)
    (reports / "bisect" / "1" / "attempts" / "0001" / "result.json").write_text("{}")
    assert listed_runs(reports)[1] == []
    assert found[1].words == "0505050505 reserve row 0"
    text = write_index(reports).read_text()
    assert "Newest: night nightly, regression (2026-07-01 00:00 UTC)." in text
    assert "original 0.750" in text


def test_damaged_files_are_named_and_the_others_shown(make_run: MakeRun, tmp_path: Path) -> None:
    make_run()
    reports = tmp_path / "reports"
    for name, content in (("half", '{"schema": "poolbisect.run/1", "scen'), ("odd", "{}")):
        (reports / name).mkdir()
        (reports / name / "result.json").write_text(content)
    found, faults = listed_runs(reports)
    assert [one.kind for one in found] == ["run"]
    assert len(faults) == 2
    assert "half/result.json:1" in faults[0]
    text = write_index(reports).read_text()
    assert "What could not be read" in text
    assert "odd/result.json" in text
    assert "hand-made" in text


def test_a_run_without_a_report_links_to_its_result(make_run: MakeRun, tmp_path: Path) -> None:
    make_run(name="a&b <c>")
    text = write_index(tmp_path / "reports").read_text()
    assert 'href="./hand-made/a%26b%20%3Cc%3E/result.json"' in text


def test_trends_leave_out_runs_over_other_questions(make_run: MakeRun, tmp_path: Path) -> None:
    for day in range(1, 4):
        make_run(name=f"{day}", started=f"2026-01-0{day}T00:00:00+00:00")
    make_run(name="0", asked=80, started="2026-01-01T01:00:00+00:00")
    text = write_index(tmp_path / "reports").read_text()
    assert "3 runs from 2026-01-01 to 2026-01-03" in text
    assert "1 run over another number of questions left out" in text


def test_an_empty_folder_has_an_index_too(tmp_path: Path) -> None:
    assert "No reports yet." in write_index(tmp_path).read_text()
    with pytest.raises(UsageError, match="there is no such folder"):
        write_index(tmp_path / "nowhere")
