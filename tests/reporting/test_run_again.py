"""The command lines of a run's report are true, and words count rightly."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from poolbisect.canary import RunReport
from poolbisect.evidence.verdict import Verdict
from poolbisect.judging import RunVerdict, SubjectVerdict
from poolbisect.measurement import Ended, Measurement, MemoryEvents
from poolbisect.reporting.charts.posterior import posterior_chart
from poolbisect.reporting.console import show
from poolbisect.reporting.documents.reading import read_document
from poolbisect.reporting.model import Commands
from poolbisect.reporting.opening import report_of
from poolbisect.scenario import load_scenario
from tests.reporting.conftest import result, write_document

MINIATURE = {"memory": "guard", "device": "cpu", "seed": 3}


def lines(folder: Path) -> list[str]:
    section = report_of(read_document(folder), folder).sections[-1]
    return [line for block in section.blocks if isinstance(block, Commands) for line in block.lines]


def document(subject: str, provenance: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema": "poolbisect.run/1",
        "scenario": "mimo-canary",
        "verdict": "as_expected",
        "exit_code": 0,
        "started": "2026-01-01T00:00:00+00:00",
        "questions": 200,
        "reference": "corrected",
        "results": [
            result("corrected", 160, 200, provenance=provenance),
            result(subject, 160, 200, provenance=provenance),
        ],
        **more,
    }


def test_a_run_with_a_command_is_run_again_by_that_command_alone(tmp_path: Path) -> None:
    command = ["poolbisect", "run", "my scenario.toml", "--repo", "sglang"]
    found = document("commit:abc", MINIATURE, command=command)
    assert lines(write_document(tmp_path / "1", found)) == [
        "poolbisect run 'my scenario.toml' --repo sglang"
    ]


def test_without_one_the_line_is_built_where_it_would_be_true(tmp_path: Path) -> None:
    found = document("release:0.5.6", MINIATURE)
    assert lines(write_document(tmp_path / "1", found)) == [
        "poolbisect run mimo-canary --subject release:0.5.6 --questions 200 --memory guard "
        "--device cpu --seed 3"
    ]


def test_and_left_out_where_it_would_not(tmp_path: Path) -> None:
    server = {"version": "0.5.6", "flags": []}
    for at, found in enumerate(
        (
            document("installed", server),
            document("original", server),
            document("commit:abc", MINIATURE),
            document("original", MINIATURE, scenario="only-in-a-file"),
        )
    ):
        assert lines(write_document(tmp_path / f"{at}", found)) == []


def test_one_commit_holds_and_two_hold() -> None:
    assert "1 commit holds at least" in posterior_chart([("a", 1.0)], "commit").description
    two = posterior_chart([("a", 0.5), ("b", 0.5)], "commit")
    assert "2 commits hold at least" in two.description


def test_the_table_breaks_no_word_at_80_columns(tmp_path: Path) -> None:
    def verdict(subject: str, ended: Ended, said: Verdict) -> SubjectVerdict:
        memory = MemoryEvents(watched=False)
        measured = Measurement(subject, ended, "", 10, (), None, None, memory, 1.0, 0)
        return SubjectVerdict(measured, said, "why", None)

    names = ("corrected", "release:0.5.6", "release:0.5.10.post1")
    report = RunReport(
        load_scenario("mimo-canary"),
        (
            verdict(names[0], Ended.NOT_APPLICABLE, Verdict.UNTESTABLE),
            verdict(names[1], Ended.BUILD_FAILED, Verdict.UNTESTABLE),
            verdict(names[2], Ended.TIMED_OUT, Verdict.UNKNOWN),
        ),
        {},
        RunVerdict.INCONCLUSIVE,
        datetime(2026, 1, 1, tzinfo=UTC),
        1.0,
        10,
    )
    shown = io.StringIO()
    show(report, tmp_path, Console(file=shown, width=80))
    table = shown.getvalue().split("Mapping access")[0].split("corrected:")[0]
    for word in ("release:0.5.6", "0.5.10.post1", "untestable", "unknown", "applicable", "watched"):
        assert word in table.split(), table
