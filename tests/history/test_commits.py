"""A commit is read from the object database, whatever state the checkout is in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import git
import pytest

from poolbisect.errors import UsageError
from poolbisect.history.commits import CommitTree
from poolbisect.history.repository import Repository, open_repository

POOL = "sglang/srt/mem_cache/memory_pool.py"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[git.Repo]:
    """Two commits that move a file, then a checkout left in disorder; with awkward settings."""
    with git.Repo.init(tmp_path / "Projekt ä b") as repo:
        with repo.config_writer() as config:
            config.set_value("user", "name", "Somebody")
            config.set_value("user", "email", "somebody@example.org")
            config.set_value("color", "ui", "always")
            config.set_value("grep", "lineNumber", "true")
            config.set_value("grep", "patternType", "perl")
        write(repo, POOL, "class ReqToTokenPool:  # ünïcode\n    rows = 1\n")
        write(repo, "sglang/srt/deep/er/use.py", "x = req_to_token[0](*)\n")
        write(repo, "sglang/srt/notes.md", "class ReqToTokenPool\n")
        repo.git.add("-A")
        repo.git.commit("-qm", "first")
        repo.create_tag("first")
        repo.git.mv(f"python/{POOL}", "python/sglang/srt/mem_cache/pools.py")
        repo.git.commit("-qm", "second")
        write(repo, "sglang/srt/mem_cache/pools.py", "staged\n")
        repo.git.add("-A")
        write(repo, "sglang/srt/mem_cache/pools.py", "dirty\n")
        write(repo, POOL, "class ReqToTokenPool: untracked\n")
        yield repo


@pytest.fixture
def opened(repo: git.Repo) -> Iterator[Repository]:
    with open_repository(Path(repo.working_dir)) as opened:
        yield opened


def write(repo: git.Repo, path: str, text: str) -> None:
    file = Path(repo.working_dir) / "python" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def fingerprint(repo: git.Repo) -> dict[str, str]:
    root = Path(repo.working_dir)
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def test_each_commit_shows_its_own_files(repo: git.Repo, opened: Repository) -> None:
    first, second = CommitTree(opened, "first"), CommitTree(opened, "HEAD")
    assert first.read(POOL) == "class ReqToTokenPool:  # ünïcode\n    rows = 1\n"
    assert second.read(POOL) is None
    assert second.read("sglang/srt/mem_cache/pools.py") == first.read(POOL)
    assert second.read("sglang/srt") is None
    assert first.name == f"commit {repo.commit('first').hexsha[:10]}"


def test_files_are_found_by_plain_text_in_python_files_only(opened: Repository) -> None:
    assert list(CommitTree(opened, "first").find("class ReqToTokenPool")) == [POOL]
    moved = ["sglang/srt/mem_cache/pools.py"]
    assert list(CommitTree(opened, "HEAD").find("class ReqToTokenPool")) == moved
    assert list(CommitTree(opened, "HEAD").find("[0](*)")) == ["sglang/srt/deep/er/use.py"]
    assert list(CommitTree(opened, "HEAD").find("nowhere")) == []
    assert list(CommitTree(opened, "HEAD").find("[0]", under="sglang/srt/mem_cache")) == []


def test_reading_leaves_the_checkout_byte_for_byte(repo: git.Repo, opened: Repository) -> None:
    before = fingerprint(repo)
    for revision in ("first", "HEAD"):
        tree = CommitTree(opened, revision)
        tree.read(POOL)
        list(tree.find("class ReqToTokenPool"))
    assert fingerprint(repo) == before


def test_a_bare_repository_serves_as_well(repo: git.Repo, tmp_path: Path) -> None:
    git.Repo.clone_from(repo.git_dir, tmp_path / "bare.git", bare=True).close()
    with open_repository(tmp_path / "bare.git") as bare:
        assert list(CommitTree(bare, "first").find("class ReqToTokenPool")) == [POOL]
        assert CommitTree(bare, "first").read(POOL) is not None


@pytest.mark.parametrize("revision", ["no-such-branch", "deadbeef", "first^^^^", ""])
def test_an_unknown_revision_is_named(opened: Repository, revision: str) -> None:
    with pytest.raises(UsageError, match="has no commit"):
        CommitTree(opened, revision)
