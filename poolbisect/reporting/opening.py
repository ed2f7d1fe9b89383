"""A document and what lies beside it, as a report."""

from __future__ import annotations

from pathlib import Path

from poolbisect.errors import UsageError
from poolbisect.reporting.contents.bisect import bisect_report
from poolbisect.reporting.contents.config_bisect import config_bisect_report
from poolbisect.reporting.contents.nightly import nightly_report
from poolbisect.reporting.contents.nights import earlier_nights
from poolbisect.reporting.contents.run import RunAnswers, run_report
from poolbisect.reporting.contents.timeline import timeline_report
from poolbisect.reporting.contents.trend import earlier_runs
from poolbisect.reporting.documents.answers import AnswerLine, read_answers
from poolbisect.reporting.documents.bisect import BisectDocument
from poolbisect.reporting.documents.config_bisect import ConfigBisectDocument
from poolbisect.reporting.documents.nightly import NightlyDocument
from poolbisect.reporting.documents.reading import AnyDocument
from poolbisect.reporting.documents.run import RunDocument
from poolbisect.reporting.documents.timeline import TimelineDocument
from poolbisect.reporting.model import Report


def report_of(document: AnyDocument, folder: Path) -> Report:
    """The report of a document that lies in `folder`, with its answers and earlier runs."""
    match document:
        case RunDocument():
            trend = earlier_runs(folder, document.scenario, document.started, document.questions)
            return run_report(document, _answers(document, folder), trend)
        case BisectDocument():
            return bisect_report(document)
        case ConfigBisectDocument():
            return config_bisect_report(document)
        case TimelineDocument():
            return timeline_report(document)
        case NightlyDocument():
            return nightly_report(document, earlier_nights(folder, document.started))


def _answers(document: RunDocument, folder: Path) -> RunAnswers:
    """What can be read; a damaged file is named and leaves only its subject out."""
    found: dict[str, dict[int, AnswerLine]] = {}
    faults: list[str] = []
    for result in document.results:
        if not result.answered:
            continue
        try:
            found[result.subject] = read_answers(folder, result.subject)
        except UsageError as error:
            faults.append(str(error))
    return RunAnswers(found, tuple(faults))
