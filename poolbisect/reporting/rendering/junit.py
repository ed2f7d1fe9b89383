"""JUnit XML: one test case for each thing that was checked. It passes only if the command would."""

from __future__ import annotations

from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from poolbisect.reporting.model import Case, CaseOutcome, Report, as_text
from poolbisect.reporting.rendering.visible import visible

_RESULTS = {
    CaseOutcome.FAILED: Failure,
    CaseOutcome.ERROR: Error,
    CaseOutcome.SKIPPED: Skipped,
}


def write_junit(report: Report, path: Path) -> None:
    """Write the report's cases as a test suite."""
    suite = TestSuite(visible(f"poolbisect {report.kind}: {report.name}"))
    if report.started:
        suite.timestamp = visible(report.started)[:19]
    suite.add_property("verdict", visible(report.verdict))
    suite.add_property("exit_code", str(report.exit_code))
    suite.add_property("headline", visible(as_text(report.headline)))
    for case in report.cases:
        suite.add_testcase(_case(case, report))
    document = JUnitXml("poolbisect")
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    # Cases leave out what they were not timed for, and what lay between them.
    suite.time = document.time = max(report.seconds, sum(case.seconds for case in report.cases))
    document.write(str(path), pretty=True)


def _case(case: Case, report: Report) -> TestCase:
    classname = f"poolbisect.{report.kind}.{visible(report.name)}"
    test = TestCase(visible(case.name), classname, case.seconds or None)
    kind = _RESULTS.get(case.outcome)
    if kind is not None:
        result = kind(visible(case.message), visible(report.verdict))
        result.text = visible(case.detail)
        test.result = [result]
    elif case.message:
        test.system_out = visible("\n".join(filter(None, (case.message, case.detail))))
    return test
