"""Runs into the results database: one that just ended, or all that lie below a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.formats import own_run
from poolbisect.formats.json_text import json_lines, json_object
from poolbisect.formats.source_file import read_source
from poolbisect.report_files import results_below
from poolbisect.store.database import Store

Lines = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Imported:
    """Ids of the runs that are in the database now, and a sentence for every file at fault."""

    runs: tuple[str, ...]
    problems: tuple[str, ...]


def record_run(store_path: Path, document: Mapping[str, Any], folder: Path) -> str:
    """Record a run that `result_json.save` wrote into `folder`; its id.

    Answers are read from the folder. InfrastructureError or UsageError, one sentence, names the
    file at fault; nothing is recorded then.
    """
    answers = {
        result["subject"]: _answers(folder, result["subject"]) for result in document["results"]
    }
    with Store(store_path) as store:
        return store.record(document, answers, folder)


def import_runs(store: Store, folder: Path) -> Imported:
    """Record every run below `folder`; those there already stay as they are.

    A damaged result.json leaves its run out, a damaged answers file only that subject's answers.
    Either is named in `problems` and left as it is; the other runs are recorded.
    """
    runs: list[str] = []
    problems: list[str] = []
    for path in results_below(folder):
        try:
            source = read_source(path)
            document = json_object(source)
            if not own_run.matches(document):
                continue
            answers, faults = _all_answers(document, path.parent)
            runs.append(store.record(document, answers, path.parent))
            problems.extend(faults)
        except UsageError as error:
            problems.append(str(error))
    return Imported(tuple(runs), tuple(problems))


def _all_answers(document: dict[str, Any], folder: Path) -> tuple[dict[str, Lines], list[str]]:
    found: dict[str, Lines] = {}
    faults: list[str] = []
    results = document.get("results")
    for result in results if isinstance(results, list) else []:
        subject = result.get("subject") if isinstance(result, dict) else None
        if not isinstance(subject, str):
            continue
        try:
            found[subject] = _answers(folder, subject)
        except UsageError as error:
            faults.append(str(error))
    return found, faults


def _answers(folder: Path, subject: str) -> Lines:
    path = own_run.answers_file(folder, subject)
    if not path.exists():
        return []
    source = read_source(path)
    lines = json_lines(source)
    for number, line in lines:
        if "id" not in line or not ("correct" in line or "outcome" in line):
            raise source.error("an answer without id or correct", number)
    return [line for _, line in lines]
