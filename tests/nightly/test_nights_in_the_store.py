"""Nights in the results database: whole, in order, once, and not growing without end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import UsageError
from poolbisect.nightly.history import last_good_of, open_history, past_of
from poolbisect.nightly.past import PastNight
from poolbisect.nightly.series import SeriesKey
from poolbisect.nightly.subjects import NightSubject
from poolbisect.scenario import Symptom
from poolbisect.store import Store, frames
from poolbisect.store.nights import (
    accept_lengths,
    forget_answers,
    import_nights,
    outcomes,
    record_night,
)
from poolbisect.store.schema import MIGRATIONS, migrate

UNDER_TEST = NightSubject("under test", "corrected")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "results.db") as opened:
        yield opened


def row(**more: Any) -> dict[str, Any]:
    return {
        "scenario": "canary",
        "workload": "w",
        "role": "under test",
        "subject": "corrected",
        "revision": "pools:corrected",
        "verdict": "good",
        "accuracy": 0.75,
        "correct": 3,
        "answered": 4,
        "loss": None,
        "weights": "abc",
        "run": None,
    } | more


def document(day: int, *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema": "poolbisect.nightly/1",
        "id": f"night-{day}",
        "started": f"2026-05-{day:02d}T03:00:00.000+00:00",
        "seconds": 60.0,
        "verdict": "no_regression",
        "exit_code": 0,
        "partial": False,
        "report": f"reports/nightly/{day}",
        "environment": {"runner": "a", "dependencies": {"torch": "2.9.0"}},
        "rows": list(rows or (row(),)),
    } | more


def run_of(store: Store, day: int) -> str:
    """A recorded run of that day with four answers."""
    result = {
        "subject": "corrected",
        "ended": "measured",
        "detail": "",
        "asked": 4,
        "answered": 4,
        "correct": 3,
        "invalid": 0,
        "accuracy": 0.75,
        "accept_length": 3.0,
        "last_slot": 1,
        "requests_on_last_slot": 1,
        "slot_coverage": 1.0,
        "seconds": 1.0,
        "tokens": 4,
        "verdict": "good",
        "reason": "",
        "out_of_range": {"watched": False, "reads": 0, "writes": 0},
        "provenance": {},
    }
    run = {
        "scenario": "canary",
        "started": f"2026-05-{day:02d}T03:00:01+00:00",
        "seconds": 2.0,
        "questions": 4,
        "reference": "corrected",
        "verdict": "as_expected",
        "exit_code": 0,
        "partial": False,
        "results": [result],
        "configuration": {},
    }
    lines = [
        {"id": n, "correct": n != 0, "prompt": "", "expected": 1, "text": "1", "accept_length": n}
        for n in range(4)
    ]
    return store.record(run, {"corrected": lines})


def past(store: Store, subject: NightSubject = UNDER_TEST) -> tuple[PastNight, ...]:
    return past_of(store, SeriesKey("canary", "w", subject.role), subject)


def test_a_series_follows_its_role_whatever_is_in_it_oldest_first(store: Store) -> None:
    for day, subject in ((3, "original"), (1, "corrected"), (2, "corrected")):
        record_night(store, document(day, row(subject=subject, accuracy=day / 10)))
    record_night(store, document(4, row(scenario="other")))
    record_night(store, document(5, row(workload="other")))
    found = past(store)
    assert [one.accuracy for one in found] == [0.1, 0.2, 0.3]
    assert [one.subject for one in found] == ["corrected", "corrected", "original"]
    assert found[0].dependencies == {"torch": "2.9.0", "weights": "abc"}
    assert found[0].runner == "a"


def test_a_series_of_a_name_has_the_nights_it_had_in_another_role(store: Store) -> None:
    release = {"subject": "release:0.5.11"}
    record_night(store, document(1, row(role="newest release", **release)))
    record_night(store, document(2, row(role="release:0.5.11", **release)))
    found = past(store, NightSubject("release:0.5.11", "release:0.5.11"))
    assert len(found) == 2


def test_a_night_is_recorded_once_and_whole_or_not_at_all(store: Store) -> None:
    record_night(store, document(1))
    record_night(store, document(1))
    assert len(frames.nights(store)) == 1
    broken = document(2, row(), row(role="other", subject=None))
    with pytest.raises(UsageError, match="not a whole night"):
        record_night(store, broken)
    with pytest.raises(UsageError, match="not a whole night"):
        record_night(store, {"id": "x"})
    assert len(frames.nights(store)) == 1
    assert len(frames.night_rows(store)) == 1


def test_the_last_good_night_comes_with_its_answers(store: Store) -> None:
    good, bad = run_of(store, 1), run_of(store, 2)
    record_night(store, document(1, row(run=good)))
    record_night(store, document(2, row(run=bad, verdict="bad", loss=0.25)))
    found = last_good_of(store, past(store), Symptom.ACCURACY)
    assert found is not None
    assert found.night.run == good
    assert found.outcomes == {"0": False, "1": True, "2": True, "3": True}
    lengths = last_good_of(store, past(store), Symptom.ACCEPT_LENGTH)
    assert lengths is not None
    assert lengths.accept_lengths == {"0": 0, "1": 1, "2": 2, "3": 3}
    assert past(store)[-1].loss == 0.25


def test_answers_of_old_nights_go_and_those_of_the_last_good_one_stay(store: Store) -> None:
    runs = [run_of(store, day) for day in range(1, 6)]
    for day, run in enumerate(runs, 1):
        verdict = "good" if day <= 2 else "bad"
        record_night(store, document(day, row(run=run, verdict=verdict)))
    assert forget_answers(store, keep=2) == 8
    kept = [bool(outcomes(store, run, "corrected")) for run in runs]
    assert kept == [False, True, False, True, True]
    assert len(past(store)) == 5
    assert forget_answers(store, keep=2) == 0
    assert accept_lengths(store, runs[1], "corrected")


def test_answers_of_runs_of_no_night_stay(store: Store) -> None:
    alone = run_of(store, 1)
    for day in range(2, 6):
        record_night(store, document(day, row(run=run_of(store, day))))
    forget_answers(store, keep=1)
    assert outcomes(store, alone, "corrected")


def test_a_new_database_is_filled_from_what_lies_below_the_reports(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    for day in (1, 2):
        folder = out / "nightly" / f"{day}"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(document(day)))
    damaged = out / "nightly" / "3"
    damaged.mkdir()
    (damaged / "result.json").write_text('{"schema": "poolbisect.nightly/1", "id"')
    opened, problems = open_history(out / "new.db", out)
    with opened as store:
        assert len(past(store)) == 2
        assert [str(damaged / "result.json") in problem for problem in problems] == [True]
        assert import_nights(store, out) == problems
        assert len(past(store)) == 2


def nights_below(out: Path, days: int) -> None:
    for day in range(1, days + 1):
        folder = out / "nightly" / f"{day}"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(document(day)))


@pytest.mark.parametrize("state", ["no bytes", "tables alone", "a part of the nights"])
def test_a_database_that_no_import_has_filled_to_the_end_is_filled(
    tmp_path: Path, state: str
) -> None:
    path = tmp_path / "results.db"
    nights_below(tmp_path, 4)
    if state == "no bytes":
        path.touch()
    else:
        with Store(path) as store:
            for day in range(1, 3) if state == "a part of the nights" else ():
                record_night(store, document(day))
    for _ in range(2):
        opened, _ = open_history(path, tmp_path)
        with opened as store:
            assert len(past(store)) == 4


def test_an_import_that_is_cut_off_is_done_again_and_one_that_ended_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.db"
    nights_below(tmp_path, 3)

    def cut_off(store: Store, out: Path) -> tuple[str, ...]:
        record_night(store, document(1))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("poolbisect.nightly.history.import_nights", cut_off)
        with pytest.raises(KeyboardInterrupt):
            open_history(path, tmp_path)
    opened, _ = open_history(path, tmp_path)
    with opened as store:
        assert len(past(store)) == 3
    # A night that runs has a file before it has ended: it must not be read in as it stands.
    (tmp_path / "nightly" / "4").mkdir()
    (tmp_path / "nightly" / "4" / "result.json").write_text(json.dumps(document(4)))
    opened, _ = open_history(path, tmp_path)
    with opened as store:
        assert len(past(store)) == 3


def test_a_second_night_waits_until_the_first_has_read_the_past_in(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    nights_below(tmp_path, 3)
    with Store(path) as first, ThreadPoolExecutor(1) as pool:
        with first.importing(tmp_path) as wanted:
            assert wanted
            second = pool.submit(nights_known, path, tmp_path)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.3)
            import_nights(first, tmp_path)
        assert second.result(timeout=60) == 3


def nights_known(path: Path, out: Path) -> int:
    opened, _ = open_history(path, out)
    with opened as store:
        return len(past(store))


def test_a_database_of_the_first_version_gains_the_nights_and_keeps_its_runs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, MIGRATIONS[:1])
    connection.execute(
        "INSERT INTO runs VALUES ('a', 's', '2026-05-01', 1, 1, NULL, 'v', 0, 0, NULL, '{}')"
    )
    connection.close()
    with Store(path) as store:
        assert len(frames.runs(store)) == 1
        record_night(store, document(1))
        assert len(past(store)) == 1
