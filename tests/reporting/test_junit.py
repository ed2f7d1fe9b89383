"""JUnit XML as other tools read it: with junitparser, and with a plain XML parser."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from junitparser import Error, Failure, JUnitXml

from poolbisect.reporting.files import write_reports
from tests.reporting.conftest import (
    HOSTILE,
    MakeRun,
    bisect_document,
    night_document,
    write_document,
)


def test_a_regression_is_a_failure_with_its_attribution(make_run: MakeRun) -> None:
    folder = make_run(reason="accuracy fell by 25.0 points")
    write_reports(folder, formats=["junit"])
    suite = next(iter(JUnitXml.fromfile(str(folder / "junit.xml"))))
    good, bad = list(suite)
    assert (good.name, good.result) == ("corrected", [])
    assert bad.classname == "poolbisect.run.hand-made"
    (failure,) = bad.result
    assert isinstance(failure, Failure)
    assert "accuracy fell by 25.0 points" in failure.message
    assert (suite.tests, suite.failures, suite.errors) == (2, 1, 0)


def test_any_text_gives_xml_that_parses(make_run: MakeRun, tmp_path: Path) -> None:
    folders = [
        make_run(reason=HOSTILE, scenario=HOSTILE, verdict=HOSTILE, started=HOSTILE),
        write_document(tmp_path / "b", bisect_document(HOSTILE)),
    ]
    for folder in folders:
        write_reports(folder, formats=["junit"])
        root = ElementTree.parse(folder / "junit.xml").getroot()
        assert root.tag == "testsuites"
        assert "</script>" in ElementTree.tostring(root, "unicode").replace("&lt;", "<").replace(
            "&gt;", ">"
        )


def test_what_could_not_be_told_is_an_error_not_a_pass(tmp_path: Path) -> None:
    inconclusive = bisect_document() | {"verdict": "drift", "exit_code": 4, "culprit": None}
    folder = write_document(tmp_path / "b", inconclusive)
    write_reports(folder, formats=["junit"])
    (case,) = next(iter(JUnitXml.fromfile(str(folder / "junit.xml"))))
    assert isinstance(case.result[0], Error)


def test_a_night_fails_by_series_and_errs_by_failure(tmp_path: Path) -> None:
    document = night_document() | {"failures": [{"scenario": "mamba-canary", "text": "no wheel"}]}
    folder = write_document(tmp_path / "n", document)
    write_reports(folder, formats=["junit"])
    series, failed = next(iter(JUnitXml.fromfile(str(folder / "junit.xml"))))
    assert isinstance(series.result[0], Failure)
    assert series.name == "mimo-canary: original"
    assert isinstance(failed.result[0], Error)
    assert "no wheel" in failed.result[0].message


def test_a_night_takes_its_time_and_no_case_claims_to_take_none(tmp_path: Path) -> None:
    folder = write_document(tmp_path / "n", night_document())
    write_reports(folder, formats=["junit"])
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    assert [float(one.attrib["time"]) for one in (suites, suites[0])] == [60.0, 60.0]
    assert all("time" not in case.attrib for case in suites.iter("testcase"))
