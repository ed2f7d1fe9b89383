"""Nights in the results database: what each series of a night was found to be, and its past."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poolbisect.errors import UsageError
from poolbisect.formats.json_text import json_object
from poolbisect.formats.source_file import read_source
from poolbisect.store.database import Store

SCHEMA = "poolbisect.nightly/1"
_ROW = (
    *("scenario", "workload", "role", "subject", "revision", "accuracy", "correct", "answered"),
    *("loss", "weights", "run"),
)
_MALFORMED = (KeyError, TypeError, AttributeError, ValueError, sqlite3.Error)


def record_night(store: Store, document: Mapping[str, Any]) -> None:
    """Record a night (the object of its result.json), all of it or nothing; once if repeated.

    UsageError if the document lacks what a night must have.
    """
    try:
        night = {
            "id": document["id"],
            "started": document["started"],
            "seconds": document["seconds"],
            "verdict": document["verdict"],
            "exit_code": document["exit_code"],
            "partial": int(document["partial"]),
            "folder": document["report"],
            "environment": json.dumps(document["environment"]),
        }
        rows = [
            {"night": night["id"], "state": row["verdict"], **{key: row[key] for key in _ROW}}
            for row in document["rows"]
        ]
        with store.writing() as connection:
            if connection.execute("SELECT 1 FROM nights WHERE id = ?", (night["id"],)).fetchone():
                return
            for table, one in (("nights", night), *(("night_rows", row) for row in rows)):
                marks = ", ".join("?" * len(one))
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(one)}) VALUES ({marks})", tuple(one.values())
                )
    except _MALFORMED as error:
        raise UsageError(f"not a whole night ({error}); it was not recorded") from error


def series_rows(
    store: Store, scenario: str, workload: str, *, role: str | None = None, subject: str = ""
) -> list[dict[str, Any]]:
    """A series, the oldest night first: that of a `role`, or without one that of a `subject`.

    Keys: started, subject, state, accuracy, correct, answered, loss, run, revision, weights, and
    `environment`, the night's own.
    """
    field, value = ("subject", subject) if role is None else ("role", role)
    columns, rows = store.query(
        "SELECT n.started, r.subject, r.state, r.accuracy, r.correct, r.answered, r.loss, r.run, "
        "r.revision, r.weights, n.environment FROM night_rows r JOIN nights n ON n.id = r.night "
        f"WHERE r.scenario = ? AND r.workload = ? AND r.{field} = ? "
        "GROUP BY n.id ORDER BY n.started, n.id",
        (scenario, workload, value),
    )
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return [row | {"environment": json.loads(row["environment"])} for row in found]


def outcomes(store: Store, run: str, subject: str) -> dict[str, bool]:
    """Question id to answered rightly, of the answered questions that are still recorded."""
    _, rows = store.query(
        "SELECT q.question, a.outcome FROM answers a JOIN measurements m ON m.id = a.measurement "
        "JOIN questions q ON q.id = a.question WHERE m.run = ? AND m.subject = ? "
        "AND a.outcome != 'unanswered' ORDER BY q.id",
        (run, subject),
    )
    return {str(question): outcome == "right" for question, outcome in rows}


def accept_lengths(store: Store, run: str, subject: str) -> dict[str, float]:
    """Question id to accept length, of the questions that have one."""
    _, rows = store.query(
        "SELECT q.question, a.accept_length FROM answers a "
        "JOIN measurements m ON m.id = a.measurement JOIN questions q ON q.id = a.question "
        "WHERE m.run = ? AND m.subject = ? AND a.accept_length IS NOT NULL ORDER BY q.id",
        (run, subject),
    )
    return {str(question): float(length) for question, length in rows}


def forget_answers(store: Store, keep: int) -> int:
    """Take out the answers of nights older than the newest `keep`; how many were taken out.

    The last good night of every series keeps its answers, as all nights keep their scores.
    """
    newest = "SELECT id FROM nights ORDER BY started DESC, id DESC LIMIT ?"
    good = (
        "SELECT r.run, max(n.started) FROM night_rows r JOIN nights n ON n.id = r.night "
        "WHERE r.state = 'good' AND r.run IS NOT NULL GROUP BY r.scenario, r.workload, r.role"
    )
    with store.writing() as connection:
        cursor = connection.execute(
            "DELETE FROM answers WHERE measurement IN (SELECT m.id FROM measurements m WHERE m.run "
            f"IN (SELECT run FROM night_rows WHERE night NOT IN ({newest})) "
            f"AND m.run NOT IN (SELECT run FROM night_rows WHERE night IN ({newest}) "
            "AND run IS NOT NULL) "
            f"AND m.run NOT IN (SELECT run FROM ({good})))",
            (keep, keep),
        )
        return cursor.rowcount


def import_nights(store: Store, out: Path) -> tuple[str, ...]:
    """Record every night below `out`; a sentence for each whose file is at fault.

    A damaged file is named and left as it is, and the other nights are recorded.
    """
    problems = []
    for path in sorted(out.glob("nightly/*/result.json")):
        try:
            document = json_object(read_source(path))
        except UsageError as error:
            problems.append(str(error))
            continue
        try:
            if document.get("schema") == SCHEMA:
                record_night(store, document)
        except UsageError as error:
            problems.append(f"{path}: {error}")
    return tuple(problems)
