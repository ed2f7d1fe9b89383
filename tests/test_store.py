"""The results database: safe for two writers, migrated, and plain about damage."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.store import Store, frames, import_runs, record_run
from poolbisect.store.schema import MIGRATIONS, migrate

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_store import document, lines
from poolbisect.store import Store
for number in range(12):
    with Store(Path(sys.argv[1])) as store:
        store.record(document(f"{sys.argv[2]}-{number}"), {"corrected": lines(50)})
"""


def lines(count: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "correct": n % 4 != 0, "prompt": f"{n}+1:", "expected": n + 1, "text": f"={n}"}
        for n in range(count)
    ]


def document(
    scenario: str = "canary", started: str = "2026-05-01T03:00:00+00:00"
) -> dict[str, Any]:
    result = {
        "subject": "corrected",
        "ended": "measured",
        "detail": "",
        "asked": 50,
        "answered": 50,
        "correct": 37,
        "invalid": 0,
        "accuracy": 0.74,
        "accept_length": 3.4,
        "last_slot": 64,
        "requests_on_last_slot": 20,
        "slot_coverage": 1.0,
        "seconds": 4.0,
        "tokens": 500,
        "verdict": "good",
        "reason": "the reference",
        "out_of_range": {"watched": True, "reads": 0, "writes": 0},
        "provenance": {"torch": "2.9.0", "threads": 2},
    }
    return {
        "schema": "poolbisect.run/1",
        "scenario": scenario,
        "started": started,
        "seconds": 9.0,
        "questions": 50,
        "reference": "corrected",
        "verdict": "as_expected",
        "exit_code": 0,
        "partial": False,
        "results": [result],
        "configuration": {"workload": {}},
    }


def saved(folder: Path, **more: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(document() | more))
    text = "".join(json.dumps(line) + "\n" for line in lines(50))
    (folder / "corrected.jsonl").write_text(text)
    return folder


def test_a_run_comes_back_as_frames(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run")
    path = tmp_path / "results.db"
    run = record_run(path, document(), folder)
    with Store(path) as store:
        (row,) = frames.runs(store).to_dict("records")
        assert (row["id"], row["scenario"], row["folder"]) == (run, "canary", str(folder))
        assert row["started"].tzinfo is not None
        (measured,) = frames.measurements(store, "canary").to_dict("records")
        assert (measured["run"], measured["accuracy"], measured["tokens"]) == (run, 0.74, 500)
        answers = frames.answers(store, run, "corrected")
        assert len(answers) == 50
        assert answers["correct"].sum() == 37
        assert answers["text"].tolist() == [f"={n}" for n in range(50)]


def test_a_series_holds_each_night_in_order_with_what_ran(tmp_path: Path) -> None:
    with Store(tmp_path / "results.db") as store:
        for night in (3, 1, 2):
            store.record(document(started=f"2026-05-0{night}T03:00:00+00:00"), {})
        partial = document(started="2026-05-04T03:00:00+00:00")
        partial["results"][0]["ended"] = "partial"
        store.record(partial, {})
        series = frames.series(store, "canary", "corrected")
    assert [started.day for started in series["started"]] == [1, 2, 3]
    assert series["provenance"].tolist() == [{"torch": "2.9.0", "threads": 2}] * 3


def test_an_empty_database_has_empty_frames(tmp_path: Path) -> None:
    with Store(tmp_path / "results.db") as store:
        assert frames.runs(store).empty
        assert frames.measurements(store).empty
        assert frames.answers(store, "none").empty
        assert frames.series(store, "none", "none").empty


def test_a_run_recorded_twice_is_there_once(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run")
    path = tmp_path / "results.db"
    assert record_run(path, document(), folder) == record_run(path, document(), folder)
    with Store(path) as store:
        assert len(frames.runs(store)) == 1


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    here = str(Path(__file__).parent)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, here]) for name in "ab"
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    with Store(path) as store:
        names = set(frames.runs(store)["scenario"])
        assert names == {f"{name}-{number}" for name in "ab" for number in range(12)}
        assert store.query("SELECT count(*) FROM answers")[1] == [(24 * 50,)]
        assert store.damage() is None


def test_a_run_is_recorded_whole_or_not_at_all(tmp_path: Path) -> None:
    broken = document()
    del broken["results"][0]["verdict"]
    with Store(tmp_path / "results.db") as store:
        with pytest.raises(UsageError, match=r"not a whole run .*verdict.*; nothing was recorded"):
            store.record(broken, {})
        with pytest.raises(UsageError, match="nothing was recorded"):
            store.record(document(), {"corrected": [{"id": 1, "correct": True}] * 2})
        assert frames.runs(store).empty
        store.record(document(), {"corrected": lines(50)})
        assert len(frames.runs(store)) == 1


def test_a_migration_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    record_run(path, document(), saved(tmp_path / "run"))
    connection = sqlite3.connect(path, isolation_level=None)
    later = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN runner TEXT",))
    broken = (*later, ("CREATE TABLE later (id INTEGER)", "CREATE TABLE runs (id TEXT)"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, broken)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
    assert connection.execute("SELECT scenario, runner FROM runs").fetchall() == [("canary", None)]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "later" not in tables, "half a migration must not stay"
    connection.close()
    with pytest.raises(UsageError, match=rf"version {len(later)} .*newer poolbisect"):
        Store(path)


def write_and_read(path: Path, folder: Path) -> None:
    for night in range(1, 6):
        record_run(path, document(started=f"2026-06-0{night}T03:00:00+00:00"), folder)
        with Store(path) as store:
            frames.answers(store, frames.runs(store)["id"][0])


@pytest.mark.parametrize("damage", ["overwritten", "truncated", "no database"])
def test_a_damaged_database_is_named_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "results.db"
    folder = saved(tmp_path / "reports" / "run")
    record_run(path, document(), folder)
    content = path.read_bytes()
    if damage == "overwritten":
        content = content[:100] + b"\xff" * 8000 + content[8100:]
    elif damage == "truncated":
        content = content[: len(content) // 3]
    else:
        content = b"not a database" * 100
    path.write_bytes(content)
    with pytest.raises(InfrastructureError) as raised:
        write_and_read(path, folder)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "move it away" in str(raised.value)
    assert path.exists()
    with Store(tmp_path / "new.db") as store:
        assert len(import_runs(store, tmp_path / "reports").runs) == 1


def test_damaged_result_files_are_named_and_other_runs_recorded(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    saved(reports / "a")
    half = saved(reports / "b", started="2026-05-02T03:00:00+00:00") / "result.json"
    half.write_text(half.read_text()[:300])
    cut = saved(reports / "c", started="2026-05-03T03:00:00+00:00") / "corrected.jsonl"
    cut.write_text(cut.read_text()[:-20])
    empty = saved(reports / "d", started="2026-05-04T03:00:00+00:00") / "result.json"
    empty.write_text("")
    before = {path: path.read_bytes() for path in reports.rglob("*") if path.is_file()}
    with Store(tmp_path / "results.db") as store:
        imported = import_runs(store, reports)
        assert len(imported.runs) == 2
        assert len(frames.runs(store)) == 2
        assert len(frames.answers(store, imported.runs[0])) == 50
        assert len(frames.answers(store, imported.runs[1])) == 0
    for path in (half, cut, empty):
        assert any(str(path) in problem for problem in imported.problems)
    assert len(imported.problems) == 3
    assert {path: path.read_bytes() for path in reports.rglob("*") if path.is_file()} == before
    with pytest.raises(UsageError, match=r"corrected\.jsonl:50: the JSON breaks off"):
        record_run(tmp_path / "other.db", document(), cut.parent)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="file"):
        Store(tmp_path / "file" / "results.db")
