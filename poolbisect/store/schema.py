"""Tables of the results database, and the migrations that make them. The last is the newest.

A migration is never changed once released; a new version of the schema is a new entry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            scenario TEXT NOT NULL,
            started TEXT NOT NULL,
            seconds REAL,
            questions INTEGER,
            reference TEXT,
            verdict TEXT NOT NULL,
            exit_code INTEGER NOT NULL,
            partial INTEGER NOT NULL,
            folder TEXT,
            configuration TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX runs_by_scenario ON runs (scenario, started)",
        """CREATE TABLE measurements (
            id INTEGER PRIMARY KEY,
            run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            subject TEXT NOT NULL,
            ended TEXT NOT NULL,
            detail TEXT,
            asked INTEGER NOT NULL,
            answered INTEGER NOT NULL,
            correct INTEGER NOT NULL,
            invalid INTEGER,
            accuracy REAL,
            accept_length REAL,
            last_slot INTEGER,
            requests_on_last_slot INTEGER,
            slot_coverage REAL,
            out_of_range_reads INTEGER,
            out_of_range_writes INTEGER,
            seconds REAL,
            tokens INTEGER,
            verdict TEXT,
            reason TEXT,
            UNIQUE (run, subject)
        ) STRICT""",
        """CREATE TABLE provenance (
            measurement INTEGER NOT NULL REFERENCES measurements (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (measurement, key)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE questions (
            id INTEGER PRIMARY KEY,
            question TEXT NOT NULL,
            prompt TEXT NOT NULL,
            expected TEXT NOT NULL,
            UNIQUE (question, prompt, expected)
        ) STRICT""",
        """CREATE TABLE answers (
            measurement INTEGER NOT NULL REFERENCES measurements (id) ON DELETE CASCADE,
            question INTEGER NOT NULL REFERENCES questions (id),
            outcome TEXT NOT NULL,
            text TEXT,
            rank INTEGER,
            slot INTEGER,
            finish TEXT,
            accept_length REAL,
            PRIMARY KEY (measurement, question)
        ) STRICT, WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE nights (
            id TEXT PRIMARY KEY,
            started TEXT NOT NULL,
            seconds REAL,
            verdict TEXT NOT NULL,
            exit_code INTEGER NOT NULL,
            partial INTEGER NOT NULL,
            folder TEXT,
            environment TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX nights_by_start ON nights (started)",
        # `run` is no foreign key: a night can be read again whose run folders are gone.
        """CREATE TABLE night_rows (
            night TEXT NOT NULL REFERENCES nights (id) ON DELETE CASCADE,
            scenario TEXT NOT NULL,
            workload TEXT NOT NULL,
            role TEXT NOT NULL,
            subject TEXT NOT NULL,
            revision TEXT,
            state TEXT NOT NULL,
            accuracy REAL,
            correct INTEGER,
            answered INTEGER,
            loss REAL,
            weights TEXT,
            run TEXT,
            PRIMARY KEY (night, scenario, workload, role)
        ) STRICT, WITHOUT ROWID""",
        "CREATE INDEX night_rows_by_series ON night_rows (scenario, workload, role)",
        "CREATE INDEX night_rows_by_subject ON night_rows (scenario, workload, subject)",
    ),
    (
        # Folders whose runs and nights were all read in: a file alone does not say that.
        """CREATE TABLE imports (
            folder TEXT PRIMARY KEY,
            ended TEXT NOT NULL
        ) STRICT, WITHOUT ROWID""",
    ),
)


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[Sequence[str]] = MIGRATIONS
) -> None:
    """Bring the database to the newest version, each step whole or not at all.

    Raises ValueError, with its version, for a database newer than these migrations.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(migrations):
        raise ValueError(str(version))
    for number, statements in enumerate(migrations[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
