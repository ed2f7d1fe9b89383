"""Pandas frames out of the results database."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from poolbisect.store.database import Store


def runs(store: Store) -> pd.DataFrame:
    """One row a run, the oldest first; `started` is a UTC time."""
    frame = _frame(
        store,
        "SELECT id, scenario, started, seconds, questions, reference, verdict, exit_code, "
        "partial, folder FROM runs ORDER BY started, id",
    )
    frame["partial"] = frame["partial"].astype(bool)
    return frame


def measurements(store: Store, scenario: str | None = None) -> pd.DataFrame:
    """One row a subject of a run, the oldest first, with the run's scenario and start."""
    where, values = ("WHERE r.scenario = ?", [scenario]) if scenario else ("", [])
    return _frame(
        store,
        "SELECT r.id AS run, r.scenario, r.started, m.* FROM measurements m "
        f"JOIN runs r ON r.id = m.run {where} ORDER BY r.started, r.id, m.id",
        values,
    ).loc[:, lambda frame: ~frame.columns.duplicated()]


def answers(store: Store, run: str, subject: str | None = None) -> pd.DataFrame:
    """One row a question of a run: subject, question, prompt, expected, outcome, correct, text,
    rank, slot, finish, accept_length."""
    where, values = ("AND m.subject = ?", [run, subject]) if subject else ("", [run])
    frame = _frame(
        store,
        "SELECT m.subject, q.question, q.prompt, q.expected, a.outcome, a.text, a.rank, a.slot, "
        "a.finish, a.accept_length FROM answers a JOIN measurements m ON m.id = a.measurement "
        f"JOIN questions q ON q.id = a.question WHERE m.run = ? {where} ORDER BY m.id, q.id",
        values,
    )
    frame.insert(5, "correct", frame["outcome"] == "right")
    return frame


def series(store: Store, scenario: str, subject: str) -> pd.DataFrame:
    """One row a night of a subject, the oldest first, partial runs left out.

    Columns: run, started, accuracy, correct, answered, accept_length, verdict, and `provenance`,
    the dict of what ran.
    """
    frame = _frame(
        store,
        "SELECT m.id, r.id AS run, r.started, m.accuracy, m.correct, m.answered, m.accept_length, "
        "m.verdict FROM measurements m JOIN runs r ON r.id = m.run WHERE r.scenario = ? "
        "AND m.subject = ? AND m.ended = 'measured' ORDER BY r.started, r.id",
        [scenario, subject],
    )
    known: dict[int, dict[str, Any]] = {}
    _, rows = store.query(
        "SELECT p.measurement, p.key, p.value FROM provenance p JOIN measurements m "
        "ON m.id = p.measurement JOIN runs r ON r.id = m.run "
        "WHERE r.scenario = ? AND m.subject = ?",
        [scenario, subject],
    )
    for measurement, key, value in rows:
        known.setdefault(measurement, {})[key] = json.loads(value)
    frame["provenance"] = pd.Series(
        [known.get(measurement, {}) for measurement in frame["id"]], index=frame.index, dtype=object
    )
    return frame.drop(columns="id")


def nights(store: Store) -> pd.DataFrame:
    """One row a night, the oldest first; `environment` is the dict of what it ran with."""
    frame = _frame(
        store,
        "SELECT id, started, seconds, verdict, exit_code, partial, folder, environment "
        "FROM nights ORDER BY started, id",
    )
    frame["partial"] = frame["partial"].astype(bool)
    frame["environment"] = frame["environment"].map(json.loads).astype(object)
    return frame


def night_rows(store: Store, scenario: str | None = None) -> pd.DataFrame:
    """One row a series of a night, the oldest first: what `nightly` judged, and in which role."""
    where, values = ("WHERE r.scenario = ?", [scenario]) if scenario else ("", [])
    return _frame(
        store,
        "SELECT n.started, r.* FROM night_rows r JOIN nights n ON n.id = r.night "
        f"{where} ORDER BY n.started, n.id, r.scenario, r.role",
        values,
    )


def _frame(store: Store, sql: str, values: list[Any] | None = None) -> pd.DataFrame:
    columns, rows = store.query(sql, values or [])
    frame = pd.DataFrame(rows, columns=columns)
    if "started" in frame:
        frame["started"] = pd.to_datetime(frame["started"], utc=True, format="ISO8601")
    return frame
