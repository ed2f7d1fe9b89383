"""The results database: one SQLite file of runs, measurements, provenance and answers.

Two processes may write at once: write-ahead log, a busy timeout, and one transaction a run. The
log needs a local disk, as SQLite says of WAL.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.store.schema import MIGRATIONS, migrate

BUSY_SECONDS = 60.0
IMPORT_SECONDS = 600.0
Document = Mapping[str, Any]
Line = Mapping[str, Any]
# What a document that is no whole run makes of itself on the way in.
_MALFORMED = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
)


class Store:
    """An open results database. Use it in a `with` block, or close it."""

    def __init__(self, path: Path) -> None:
        """Open `path`, and make it if it does not exist.

        InfrastructureError names a file that is damaged, locked or cannot be written; UsageError
        one that a newer version wrote.
        """
        self.path = path
        with self._plainly():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        connection = self._connection
        # Two processes that make the file at once would both switch its journal mode.
        with FileLock(self.path.with_name(f"{self.path.name}.lock"), timeout=BUSY_SECONDS):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            try:
                migrate(connection)
            except ValueError as error:
                raise UsageError(
                    f"{self.path}: version {error} of the results database, but this poolbisect "
                    f"knows {len(MIGRATIONS)}; use the newer poolbisect that wrote it"
                ) from error

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def record(
        self, document: Document, answers: Mapping[str, Sequence[Line]], folder: Path | None = None
    ) -> str:
        """Record a run (result.json's object) and its answers by subject; the run's id.

        All of it or nothing. A run recorded twice is there once. UsageError if the document lacks
        what a run must have.
        """
        try:
            with self._plainly(), self._transaction() as connection:
                return _record(connection, document, answers, folder)
        except _MALFORMED as error:
            where = folder / "result.json" if folder else "the run"
            raise UsageError(f"{where}: not a whole run ({error}); nothing was recorded") from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all that is written in the block, or nothing of it."""
        with self._plainly(), self._transaction() as connection:
            yield connection

    @contextmanager
    def importing(self, folder: Path) -> Iterator[bool]:
        """Whether what lies below `folder` has still to be read in; only one process is inside.

        A block that ends without an error marks the folder as read in; one that is cut off leaves
        it to the next, which finds the part that was recorded and goes on.

        InfrastructureError if another process is inside for ten minutes.
        """
        # A lock of its own: the one of `_prepare` would keep others from opening the file.
        lock = FileLock(self.path.with_name(f"{self.path.name}.import.lock"))
        with self._plainly(IMPORT_SECONDS):
            lock.acquire(timeout=IMPORT_SECONDS)
        try:
            name = str(folder.resolve())
            wanted = not self.query("SELECT 1 FROM imports WHERE folder = ?", (name,))[1]
            yield wanted
            if wanted:
                ended = datetime.now(UTC).isoformat(timespec="seconds")
                with self.writing() as connection:
                    connection.execute("INSERT INTO imports VALUES (?, ?)", (name, ended))
        finally:
            lock.release()

    def query(
        self, sql: str, values: Sequence[Any] = ()
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of a SELECT."""
        with self._plainly():
            cursor = self._connection.execute(sql, values)
            return [column[0] for column in cursor.description], cursor.fetchall()

    def damage(self) -> str | None:
        """What SQLite's quick check finds wrong with the file, None if nothing."""
        try:
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            return str(error)
        return None if found == "ok" else str(found)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _plainly(self, waited: float = BUSY_SECONDS) -> Iterator[None]:
        """SQLite's and the system's errors as one sentence that names the file."""
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.OperationalError as error:
            raise InfrastructureError(f"{self.path}: {error}; nothing was changed") from error
        except sqlite3.DatabaseError as error:
            raise InfrastructureError(
                f"{self.path}: the results database is damaged ({error}); it is left as it is: "
                "move it away, and the next run makes a new one, into which run folders can be "
                "read again"
            ) from error
        except Timeout as error:
            raise InfrastructureError(
                f"{self.path}: another process holds its lock for more than {waited:g} s"
            ) from error
        except OSError as error:
            raise InfrastructureError(
                f"{self.path}: {(error.strerror or str(error)).lower()}"
            ) from error


def run_id(document: Document) -> str:
    """The id of a run: a hash of scenario, start and results, wherever its folder is."""
    parts = [document["scenario"], document["started"], document["seconds"], document["results"]]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _record(
    connection: sqlite3.Connection,
    document: Document,
    answers: Mapping[str, Sequence[Line]],
    folder: Path | None,
) -> str:
    identity = run_id(document)
    if connection.execute("SELECT 1 FROM runs WHERE id = ?", (identity,)).fetchone():
        return identity
    run = {
        "id": identity,
        "scenario": document["scenario"],
        "started": document["started"],
        "seconds": document["seconds"],
        "questions": document["questions"],
        "reference": document["reference"],
        "verdict": document["verdict"],
        "exit_code": document["exit_code"],
        "partial": int(document["partial"]),
        "folder": str(folder) if folder else None,
        "configuration": json.dumps(document["configuration"]),
    }
    _insert(connection, "runs", run)
    for result in document["results"]:
        measurement = _insert(connection, "measurements", _measurement(identity, result))
        for key, value in result["provenance"].items():
            row = {"measurement": measurement, "key": key, "value": json.dumps(value)}
            _insert(connection, "provenance", row)
        for line in answers.get(result["subject"], ()):
            _answer(connection, measurement, line)
    return identity


def _measurement(run: str, result: Line) -> dict[str, Any]:
    out_of_range = result["out_of_range"]
    watched = out_of_range["watched"]
    same = ("subject", "ended", "detail", "asked", "answered", "correct", "invalid", "accuracy")
    more = ("accept_length", "last_slot", "requests_on_last_slot", "slot_coverage", "seconds")
    return {
        "run": run,
        **{key: result[key] for key in (*same, *more, "tokens", "verdict", "reason")},
        # Not looked at is not the same as none.
        "out_of_range_reads": out_of_range["reads"] if watched else None,
        "out_of_range_writes": out_of_range["writes"] if watched else None,
    }


def _answer(connection: sqlite3.Connection, measurement: int, line: Line) -> None:
    values = (str(line["id"]), str(line.get("prompt", "")), str(line.get("expected", "")))
    connection.execute(
        "INSERT OR IGNORE INTO questions (question, prompt, expected) VALUES (?, ?, ?)", values
    )
    (question,) = connection.execute(
        "SELECT id FROM questions WHERE question = ? AND prompt = ? AND expected = ?", values
    ).fetchone()
    right = "right" if line.get("correct") else "wrong"
    row = {"measurement": measurement, "question": question, "outcome": line.get("outcome", right)}
    for key in ("text", "rank", "slot", "finish", "accept_length"):
        row[key] = line.get(key)
    _insert(connection, "answers", row)


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    cursor = connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values())
    )
    return int(cursor.lastrowid or 0)
