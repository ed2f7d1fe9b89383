"""Which results belong to a folder of reports."""

from __future__ import annotations

from pathlib import Path

from poolbisect.report_files import results_below


def test_attempts_and_collections_with_an_index_of_their_own_are_left_out(tmp_path: Path) -> None:
    mine = tmp_path / "mimo-canary" / "20260101T000000Z"
    others = (
        tmp_path / "bisect" / "x" / "attempts" / "0001-a",
        tmp_path / "example" / "mimo-canary" / "20260101T000000Z",
        tmp_path / ".trash" / "y",
    )
    for folder in (mine, *others):
        folder.mkdir(parents=True)
        (folder / "result.json").write_text("{}")
    for place in (tmp_path, tmp_path / "example"):
        (place / "index.html").write_text("")
    assert results_below(tmp_path) == [mine / "result.json"]
    assert results_below(tmp_path / "example") == [others[1] / "result.json"]


def test_the_worked_example_is_a_collection_of_its_own() -> None:
    reports = Path(__file__).parents[1] / "reports"
    below = {path.relative_to(reports).parts[0] for path in results_below(reports)}
    assert "example" not in below
    assert results_below(reports / "example")
