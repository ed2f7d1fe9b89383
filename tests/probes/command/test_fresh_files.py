"""C9: a result that this attempt did not write is never read as its own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from poolbisect.probes.command.fresh_files import (
    StaleError,
    check_run_id,
    fresh_file,
    look_before,
)

RUN, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    folder = tmp_path / "attempt"
    folder.mkdir()
    return folder


def test_a_file_written_since_is_fresh(tmp_path: Path, attempt: Path) -> None:
    score = tmp_path / "score.json"
    score.write_text("old")
    before = look_before(str(score), attempt)
    score.write_text("new")
    assert fresh_file(before) == score


def test_a_file_written_anew_with_the_same_bytes_is_fresh(tmp_path: Path, attempt: Path) -> None:
    score = tmp_path / "score.json"
    score.write_text("same")
    before = look_before(str(score), attempt)
    score.write_text("same")
    assert fresh_file(before) == score


def test_a_file_left_from_before_is_refused(tmp_path: Path, attempt: Path) -> None:
    score = tmp_path / "score.json"
    score.write_text("old")
    before = look_before(str(score), attempt)
    with pytest.raises(StaleError, match=r"score\.json is left from before this run"):
        fresh_file(before)


def test_an_old_file_put_there_since_is_refused(tmp_path: Path, attempt: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("old")
    os.utime(kept, (1_700_000_000, 1_700_000_000))
    before = look_before(str(tmp_path / "score.json"), attempt)
    shutil.copy2(kept, tmp_path / "score.json")
    with pytest.raises(StaleError, match="older than this run"):
        fresh_file(before)


def test_nothing_there_is_said(tmp_path: Path, attempt: Path) -> None:
    with pytest.raises(StaleError, match="did not write it"):
        fresh_file(look_before(str(tmp_path / "none.json"), attempt))
    with pytest.raises(StaleError, match="is a folder"):
        fresh_file(look_before(str(tmp_path), attempt))


def test_a_glob_takes_the_fresh_one_of_many(tmp_path: Path, attempt: Path) -> None:
    (tmp_path / "results_1.json").write_text("old")
    before = look_before(str(tmp_path / "**" / "results_*.json"), attempt)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "results_2.json").write_text("new")
    assert fresh_file(before).name == "results_2.json"
    (tmp_path / "results_3.json").write_text("new")
    with pytest.raises(StaleError, match=r"several files \(results_2\.json, results_3\.json\)"):
        fresh_file(before)


def test_a_name_that_looks_like_a_glob_is_a_name(tmp_path: Path, attempt: Path) -> None:
    before = look_before(str(tmp_path / "score[1].json"), attempt)
    (tmp_path / "score[1].json").write_text("new")
    assert fresh_file(before).name == "score[1].json"


@pytest.mark.parametrize("key", ["run_id", "poolbisect_run_id"])
def test_another_runs_result_is_refused(tmp_path: Path, key: str) -> None:
    one, lines = tmp_path / "one.json", tmp_path / "lines.jsonl"
    one.write_text(json.dumps({key: OTHER, "score": 1}, indent=2))
    lines.write_text(f"{json.dumps({key: RUN})}\n{json.dumps({key: OTHER})}\n")
    for path in (one, lines):
        with pytest.raises(StaleError, match=f"is of run {OTHER}"):
            check_run_id(path, RUN)
        path.write_text(path.read_text().replace(OTHER, RUN))
        check_run_id(path, RUN)


def test_names_of_other_tools_runs_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "score.json"
    for named in ("run_id", "2024-01-01", 7, None):
        path.write_text(json.dumps({"run_id": named}))
        check_run_id(path, RUN)
