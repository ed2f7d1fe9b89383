"""A commit is taken back beside the repository: what is left, what is not, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.history.commits import CommitTree
from poolbisect.history.repository import Repository, open_repository
from poolbisect.history.reverted import RevertedTree, revert

POOL = "sglang/srt/mem_cache/memory_pool.py"
LINES = [f"row_{number} = {number}" for number in range(12)]


def text(**changed: str) -> str:
    """A file of twelve lines, some of them changed: `row_3="…"`."""
    return "".join(f"{changed.get(line.split()[0], line)}\n" for line in LINES)


@pytest.fixture
def opened() -> Iterator[Callable[[Path], Repository]]:
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(open_repository(path))


def taken_back(repository: Repository, newer: str, sha: str) -> RevertedTree | str:
    return revert(repository, repository.commit(newer), repository.commit(sha))


def write(builder: Any, title: str, **files: str | None) -> str:
    named = {"pool": f"python/{POOL}", "more": "python/sglang/srt/more.py", "readme": "README.md"}
    sha: str = builder.commit(title, {named[key]: value for key, value in files.items()})
    return sha


def test_what_a_commit_did_is_gone_and_what_came_after_stays(
    builder: Any, opened: Callable[[Path], Repository]
) -> None:
    write(builder, "base", pool=text(), readme="r")
    culprit = write(builder, "culprit", pool=text(row_1="short = 1"))
    write(builder, "later", pool=text(row_1="short = 1", row_10="later = 1"))
    repository = opened(builder.folder)
    tree = taken_back(repository, "main", culprit)
    assert isinstance(tree, RevertedTree)
    assert tree.read(POOL) == text(row_10="later = 1")
    assert list(tree.find("later = 1")) == [POOL]
    assert list(tree.find("row_1 = 1")) == [POOL]
    assert list(tree.find("short")) == []
    assert tree.name == f"{CommitTree(repository, 'main').name} without {culprit[:10]}"


def test_a_file_that_it_added_goes_and_one_that_it_deleted_comes_back(
    builder: Any, opened: Callable[[Path], Repository]
) -> None:
    write(builder, "base", pool=text())
    added = write(builder, "added", more="more = 1\n")
    deleted = write(builder, "deleted", pool=None)
    without = taken_back(opened(builder.folder), "main", added)
    assert isinstance(without, RevertedTree)
    assert without.read("sglang/srt/more.py") is None
    assert list(without.find("more = 1")) == []
    back = taken_back(opened(builder.folder), "main", deleted)
    assert isinstance(back, RevertedTree)
    assert back.read(POOL) == text()
    assert list(back.find("row_1 = 1")) == [POOL]
    assert back.read("sglang/srt/more.py") == "more = 1\n"


def test_why_there_is_none(builder: Any, opened: Callable[[Path], Repository]) -> None:
    root = write(builder, "base", pool=text(), readme="r")
    written_over = write(builder, "written over", pool=text(row_1="a = 1"))
    write(builder, "over it", pool=text(row_1="b = 1"))
    undone = write(builder, "undone", pool=text(row_1="b = 1", row_9="c = 1"))
    write(builder, "by hand", pool=text(row_1="b = 1"))
    elsewhere = write(builder, "elsewhere", readme="s")
    repository = opened(builder.folder)
    head = repository.commit("main").short
    assert taken_back(repository, "main", root) == "it has no parent to go back to"
    conflict = taken_back(repository, "main", written_over)
    assert conflict == f"it does not revert cleanly at {head}"
    for commit in (undone, elsewhere):
        left = taken_back(repository, "main", commit)
        assert left == f"nothing of it is left in the package at {head}"


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_the_repository_stays_as_it_is_and_its_path_may_have_a_colon(
    new_repository: Callable[[str], Any], opened: Callable[[Path], Repository]
) -> None:
    builder = new_repository('a:b "c" \\ d')
    write(builder, "base", pool=text())
    culprit = write(builder, "culprit", pool=text(row_1="short = 1"))
    write(builder, "later", pool=text(row_1="short = 1", row_10="later = 1"))
    before = contents(builder.folder)
    tree = taken_back(opened(builder.folder), "main", culprit)
    assert isinstance(tree, RevertedTree)
    # Merged anew from both sides: a blob that the repository has never had.
    assert tree.read(POOL) == text(row_10="later = 1")
    assert contents(builder.folder) == before


def test_a_missing_file_is_git_s_own_reason_and_not_its_age(
    builder: Any, opened: Callable[[Path], Repository]
) -> None:
    write(builder, "base", pool=text())
    culprit = write(builder, "culprit", pool=text(row_1="short = 1"))
    write(builder, "later", pool=text(row_1="short = 1", row_10="later = 1"))
    blob = builder.git("rev-parse", f"{culprit}:python/{POOL}")
    (builder.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(InfrastructureError, match="git fsck") as raised:
        taken_back(opened(builder.folder), "main", culprit)
    assert blob in str(raised.value)
    assert "2.38" not in str(raised.value)


def test_a_git_that_cannot_merge_aside_says_which_can(
    builder: Any,
    opened: Callable[[Path], Repository],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(builder, "base", pool=text())
    culprit = write(builder, "culprit", pool=text(row_1="short = 1"))
    write(builder, "later", pool=text(row_1="short = 1", row_10="later = 1"))
    repository = opened(builder.folder)
    old = tmp_path / "old" / "git"
    old.parent.mkdir()
    # What a git before 2.38 does: the command is there and does not know the option.
    old.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "*merge-tree*) echo usage: git merge-tree >&2; exit 129;;\n"
        "*version*) echo git version 2.34.1;;\n"
        '*) PATH="${PATH#*:}" exec git "$@";;\n'
        "esac\n"
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=":")
    reason = taken_back(repository, "main", culprit)
    assert reason == "this git cannot merge without a work tree; use git 2.38 or newer"
