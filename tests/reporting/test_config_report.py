"""What the reports of a configuration bisect say, and that the command writes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from poolbisect.cli import group
from poolbisect.reporting.contents.overview import listed_runs
from poolbisect.reporting.documents.reading import read_document
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.model import CaseOutcome, Report, Table, Tone, as_text
from poolbisect.reporting.numbers import DASH
from poolbisect.reporting.opening import report_of
from tests.reporting.conftest import HOSTILE, write_document

Fields = Any


def launch(number: int, on: list[str], verdict: str | None, **more: Fields) -> dict[str, Fields]:
    bad = verdict == "bad"
    return {
        "number": number,
        "role": "subject",
        "on": on,
        "reason": "narrowing",
        "verdict": verdict,
        "explanation": f"said of launch {number}",
        "ended": "measured",
        "correct": 40 if bad else 80,
        "asked": 100,
        "accuracy": 0.4 if bad else 0.8,
        "interval": [0.31, 0.5] if bad else [0.71, 0.87],
        "out_of_range_reads": 12 if "s" in on else 0,
        "out_of_range_writes": 3 if "s" in on else 0,
        "seconds": 1.0,
        **more,
    }


def document(**more: Fields) -> dict[str, Fields]:
    """Bad with s and c on; s alone accesses out of range, and its score is good."""
    good = {"on": ["s"], "verdict": "good", "reason": "no difference", "launches": 1}
    against = {"paired": True, "lost": 41, "gained": 1, "difference": -0.4, "p_value": 1e-9}
    return {
        "schema": "poolbisect.config-bisect/1",
        "verdict": "culprit",
        "exit_code": 0,
        "reason": "bad twice with c and s on",
        "probe": "miniature",
        "scenario": "mimo-canary",
        "symptom": "accuracy",
        "subject": "original",
        "reference": "corrected",
        "questions": 100,
        "started": "2026-06-01T10:00:00+00:00",
        "seconds": 9.0,
        "switches": [
            {"name": name, "off": {f"{name}-flag": "1"}, "on": {f"{name}-flag": "64"}}
            for name in ("c", "s", "p")
        ],
        "culprit": ["c", "s"],
        "certain": ["c", "s"],
        "suspects": [],
        "others": [],
        "remarks": ["turning off c mends it"],
        "confirmation": {
            "again": {"on": ["c", "s"], "verdict": "bad", "reason": "fell", "launches": 1},
            "without": {"c": good, "s": good},
            "others_on": {"c": good, "s": good},
            "reference": good,
        },
        "launches": [
            launch(1, [], "good"),
            launch(2, [], None, role="reference"),
            launch(3, ["c", "p", "s"], "bad", comparison=against),
            launch(4, ["s"], "good"),
            launch(5, ["c", "s"], "bad", comparison=against),
        ],
        "concurrency": [
            launch(0, ["s"], "untestable", concurrency=1, ended="not_applicable", accuracy=None),
            launch(0, ["s"], "bad", concurrency=64, last_slot=64, requests_on_last_slot=21),
        ],
        "command": ["poolbisect", "bisect", "--config", "--out", "a b"],
        "environment": {"python": "3.11.7"},
        **more,
    }


def report(folder: Path, found: dict[str, Fields]) -> Report:
    write_document(folder, found)
    return report_of(read_document(folder), folder)


def tables(found: Report, name: str) -> list[Table]:
    section = next(one for one in found.sections if one.name == name)
    return [block for block in section.blocks if isinstance(block, Table)]


def test_the_minimal_set_comes_first_then_what_vouches_for_it(tmp_path: Path) -> None:
    found = report(tmp_path / "1", document())
    assert (found.verdict, found.tone) == ("switches found", Tone.GOOD)
    assert as_text(found.headline) == "c and s make it bad, together."
    names = [section.name for section in found.sections]
    assert names == [
        *("members", "launches", "confirmation", "concurrency", "switches", "search"),
        "environment",
    ]
    members = tables(found, "members")[0]
    assert [[cell.text for cell in row] for row in members.rows] == [
        ["c", "c-flag", "1", "64"],
        ["s", "s-flag", "1", "64"],
    ]
    said = [row[0].text for row in tables(found, "confirmation")[0].rows]
    assert said[0] == "the set, launched again"
    assert said[-1] == "corrected with the set on"
    assert len(said) == 6
    assert "with s on as well" in as_text(found.summary[-1])
    assert found.cases[0].outcome is CaseOutcome.PASSED


def test_launches_have_their_scores_and_accesses(tmp_path: Path) -> None:
    found = report(tmp_path / "1", document())
    scores, explanations = tables(found, "launches")
    cells = [[cell.text for cell in row if cell.chart is None] for row in scores.rows]
    assert cells[1] == [
        "2",
        "corrected: none",
        "compared with",
        f"0.800 (0.710{DASH}0.870)",
        DASH,
        "0 / 0",
    ]
    assert cells[2] == ["3", "all", "bad", f"0.400 (0.310{DASH}0.500)", "41 / 1", "12 / 3"]
    assert [row[3].text for row in explanations.rows][4] == "said of launch 5"
    served = tables(found, "concurrency")[0]
    assert [row[0].text for row in served.rows] == ["1", "64"]
    assert served.rows[0][2].text == "not applicable"
    assert "64: 21" in [cell.text for cell in served.rows[1]]


@pytest.mark.parametrize(
    ("verdict", "code", "headline"),
    [
        ("suspect_range", 4, "It lies in s, c and p, of which s is certain."),
        ("all_on_good", 2, "Everything on is good."),
        ("interrupted", 130, "Everything on is good."),
        ("a_new_one", 4, "Everything on is good."),
    ],
)
def test_without_a_minimal_set_nothing_passes(
    tmp_path: Path, verdict: str, code: int, headline: str
) -> None:
    some = verdict == "suspect_range"
    found = report(
        tmp_path / "1",
        document(
            verdict=verdict,
            exit_code=code,
            reason="everything on is good",
            culprit=None,
            certain=["s"] if some else [],
            suspects=["c", "p"] if some else [],
            confirmation=None,
            concurrency=[],
            launches=[],
        ),
    )
    assert as_text(found.headline) == headline
    assert found.tone is Tone.WARNING
    assert found.cases[0].outcome is CaseOutcome.ERROR


def test_what_others_wrote_is_escaped_in_the_page(tmp_path: Path) -> None:
    found = document(subject=HOSTILE, reason=HOSTILE, remarks=[HOSTILE])
    found["launches"][0]["explanation"] = HOSTILE
    write_reports(write_document(tmp_path / "1", found))
    page = (tmp_path / "1" / "report.html").read_text()
    assert "<img" not in page
    assert "<svg onload" not in page
    assert "&lt;img" in page


def test_the_command_writes_every_report_and_the_index_lists_it(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    probe = "import os, sys; sys.exit(os.environ['B'] == '1')"
    switches = ["--switch", "A=0:1", "--switch", "B=0:1"]
    arguments = [*switches, "--json", "--out", str(out), "--", sys.executable, "-c", probe]
    ran = CliRunner().invoke(group, ["bisect", "--config", "--probe", "command", *arguments])
    assert ran.exit_code == 0, ran.output
    folder = Path(json.loads(ran.stdout)["report"])
    for name in ("report.html", "report.md", "junit.xml"):
        assert "B" in (folder / name).read_text()
    assert "configuration bisect" in (out / "index.html").read_text()
    listed, faults = listed_runs(out)
    assert faults == []
    assert [(one.kind, one.verdict, one.words) for one in listed] == [
        ("configuration bisect", "switches found", "B")
    ]
    again = CliRunner().invoke(group, ["report", str(folder)])
    assert again.exit_code == 0, again.output
