"""All runs below a folder: what each said, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from poolbisect.errors import UsageError
from poolbisect.formats.json_text import json_object
from poolbisect.formats.source_file import read_source
from poolbisect.report_files import results_below
from poolbisect.reporting import numbers
from poolbisect.reporting.contents.bisect import VERDICTS as BISECT_VERDICTS
from poolbisect.reporting.contents.config_bisect import VERDICTS as CONFIG_VERDICTS
from poolbisect.reporting.contents.nightly import VERDICTS as NIGHTLY_VERDICTS
from poolbisect.reporting.contents.nights import Night
from poolbisect.reporting.contents.run import VERDICTS as RUN_VERDICTS
from poolbisect.reporting.contents.trend import ScoredRun
from poolbisect.reporting.documents.bisect import Entry
from poolbisect.reporting.documents.nightly import Finding
from poolbisect.reporting.documents.run import Document
from poolbisect.reporting.model import Tone


class _Schema(Document, frozen=True, kw_only=True):
    schema: str


class _Bisected(Document, frozen=True, kw_only=True):
    schema: str
    verdict: str
    exit_code: int
    good: Entry
    bad: Entry
    started: str = ""
    seconds: float = 0.0
    scenario: str | None = None
    culprit: Entry | None = None
    reason: str = ""


class _Configured(Document, frozen=True, kw_only=True):
    schema: str
    verdict: str
    exit_code: int
    subject: str
    scenario: str | None = None
    reason: str = ""
    started: str = ""
    seconds: float = 0.0
    culprit: tuple[str, ...] | None = None


class _Night(Night, frozen=True, kw_only=True):
    verdict: str
    exit_code: int
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()


class _Surveyed(Document, frozen=True, kw_only=True):
    schema: str
    good: str
    bad: str
    transitions: tuple[Document, ...] = ()
    started: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Listed:
    """One run as a line of the index; `run` and `night` hold what a trend needs."""

    folder: Path
    kind: str
    name: str
    started: str
    verdict: str
    tone: Tone
    words: str
    seconds: float
    run: ScoredRun | None = None
    night: Night | None = None


def listed_runs(reports: Path) -> tuple[list[Listed], list[str]]:
    """Every result.json below `reports`, newest first, and a sentence for each that is damaged."""
    found: list[Listed] = []
    faults: list[str] = []
    for path in results_below(reports):
        try:
            found += _listed(path)
        except UsageError as error:
            faults.append(str(error))
    found.sort(key=lambda one: (one.started, str(one.folder)), reverse=True)
    return found, faults


def _listed(path: Path) -> Iterator[Listed]:
    """At most one: a document of another kind of poolbisect's is passed over."""
    try:
        data = path.read_bytes()
        schema = msgspec.json.decode(data, type=_Schema).schema
        match schema:
            case "poolbisect.run/1":
                yield _of_run(path.parent, msgspec.json.decode(data, type=ScoredRun))
            case "poolbisect.bisect/1":
                yield _of_bisect(path.parent, msgspec.json.decode(data, type=_Bisected))
            case "poolbisect.config-bisect/1":
                yield _of_config(path.parent, msgspec.json.decode(data, type=_Configured))
            case "poolbisect.nightly/1":
                yield _of_night(path.parent, msgspec.json.decode(data, type=_Night))
            case "poolbisect.timeline/1":
                yield _of_timeline(path.parent, msgspec.json.decode(data, type=_Surveyed))
            case _:
                raise UsageError(f"{path}: has the unknown schema {schema[:60]!r}")
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        json_object(read_source(path))  # says in which line the JSON breaks off, if it does
        raise UsageError(f"{path}: is not a report's document ({str(error)[:200]})") from error


def _of_run(folder: Path, run: ScoredRun) -> Listed:
    word, tone = RUN_VERDICTS.get(run.verdict, (run.verdict, Tone.WARNING))
    words = ", ".join(f"{one.subject} {numbers.accuracy(one.accuracy)}" for one in run.results)
    return Listed(folder, "run", run.scenario, run.started, word, tone, words, run.seconds, run)


def _of_bisect(folder: Path, found: _Bisected) -> Listed:
    word, tone = BISECT_VERDICTS.get(found.verdict, (found.verdict, Tone.WARNING))
    words = found.reason
    if found.culprit is not None:
        words = f"{found.culprit.called} {found.culprit.title}"
    name = f"{found.good.called}..{found.bad.called}"
    return Listed(folder, "bisect", name, found.started, word, tone, words, found.seconds)


def _of_config(folder: Path, found: _Configured) -> Listed:
    word, tone = CONFIG_VERDICTS.get(found.verdict, (found.verdict, Tone.WARNING))
    words = ", ".join(found.culprit or ()) or found.reason
    name = f"{found.scenario}, {found.subject}" if found.scenario else found.subject
    kind = "configuration bisect"
    return Listed(folder, kind, name, found.started, word, tone, words, found.seconds)


def _of_night(folder: Path, night: _Night) -> Listed:
    word, tone = NIGHTLY_VERDICTS.get(night.verdict, (night.verdict, Tone.WARNING))
    words = "; ".join(f"{one.state}: {one.subject} on {one.scenario}" for one in night.findings)
    return Listed(
        folder,
        "night",
        "nightly",
        night.started,
        word,
        tone,
        words or "nothing new",
        night.seconds,
        night=night,
    )


def _of_timeline(folder: Path, found: _Surveyed) -> Listed:
    words = numbers.plural(len(found.transitions), "transition")
    name = f"{found.good[:10]}..{found.bad[:10]}"
    return Listed(
        folder, "timeline", name, found.started, "answered", Tone.PLAIN, words, found.seconds
    )
