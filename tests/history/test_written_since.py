"""The commit that wrote an allocation is found through renames, moves and reformatting."""

from __future__ import annotations

from typing import Any

from poolbisect.history.repository import open_repository
from poolbisect.history.written_since import written_since

OLD, NEW = "python/sglang/srt/old.py", "python/sglang/srt/worker/new.py"


def source(rows: str = "self.pool.size", function: str = "start", extra: str = "") -> str:
    return (
        f"{extra}class Worker:\n    def {function}(self):\n"
        f"        self.table = torch.empty(({rows}, 4), dtype=self.dtype)\n"
    )


REFORMATTED = """import os


class Worker:
    def start(self):
        if os:
            self.table: Tensor = torch.empty(
                (
                    self.pool.size,  # a row each
                    8,
                ),
                device="cuda",
            )
"""


def since(builder: Any, revision: str, path: str, line: int) -> str | None:
    with open_repository(builder.folder) as repository:
        found = written_since(
            repository, repository.commit(revision), path.removeprefix("python/"), line
        )
    return None if found is None else found.title


def test_edits_elsewhere_renames_and_reformatting_are_seen_through(builder: Any) -> None:
    builder.commit("before", {OLD: "x = 1\n"})
    builder.commit("writes it", {OLD: source()})
    builder.commit("above", {OLD: source(extra="import os\n")})
    builder.git("rm", "-q", OLD)
    builder.commit("moves it", {NEW: source(extra="import os\n")})
    builder.commit("reformats", {NEW: REFORMATTED})
    assert since(builder, "main", NEW, 7) == "writes it"
    assert since(builder, "main~1", NEW, 4) == "writes it"


def test_other_rows_are_another_allocation(builder: Any) -> None:
    builder.commit("first", {OLD: source()})
    builder.commit("longer", {OLD: source("self.pool.size + 1")})
    builder.commit("back", {OLD: source()})
    assert since(builder, "main", OLD, 3) == "back"
    assert since(builder, "main~1", OLD, 3) == "longer"


def test_another_function_is_another_allocation(builder: Any) -> None:
    builder.commit("first", {OLD: source()})
    builder.commit("elsewhere", {OLD: source(function="restart")})
    assert since(builder, "main", OLD, 3) == "elsewhere"


def test_the_first_commit_of_all_can_have_written_it(builder: Any) -> None:
    builder.commit("root", {OLD: source()})
    assert since(builder, "main", OLD, 3) == "root"


def test_no_allocation_on_the_line(builder: Any) -> None:
    builder.commit("root", {OLD: source(), NEW: "def broken(:\n"})
    assert since(builder, "main", OLD, 2) is None
    assert since(builder, "main", NEW, 1) is None
    assert since(builder, "main", "python/nowhere.py", 1) is None
