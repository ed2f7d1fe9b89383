"""Reading a repository changes none of its bytes, and obeys none of its user's settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.history.commits import CommitTree
from poolbisect.history.ranges import CommitRange, commit_range
from poolbisect.history.repository import open_repository
from poolbisect.history.reverted import RevertedTree, revert
from poolbisect.history.sources_over_time import SourcesOverTime
from poolbisect.history.written_since import written_since

POOL = "python/sglang/srt/mem_cache/memory_pool.py"


def fingerprint(root: Path) -> dict[str, tuple[str, int]]:
    """Every file's contents and mode, .git included, and every folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (
            hashlib.sha256(content).hexdigest(),
            path.lstat().st_mode,
        )
    return found


def text(rows: str) -> str:
    return f"class ReqToTokenPool:\n    def start(self):\n        self.table = empty(({rows}, 4))\n"


@pytest.fixture
def messy(builder: Any, tmp_path: Path) -> Any:
    """A checkout in disorder, whose every setting would run a program that leaves a trace."""
    for number, rows in enumerate(("size", "size", "size + 1")):
        builder.commit(f"commit {number}", {POOL: text(rows), "README.md": str(number)})
    builder.write("stashed.txt", "stashed")
    builder.git("stash", "push", "-q", "-u")
    builder.git("checkout", "-q", "--detach", "main~1")
    builder.write(POOL, "staged\n")
    builder.git("add", "-A")
    builder.write(POOL, "dirty\n")
    builder.write("python/sglang/srt/untracked.py", "class ReqToTokenPool: untracked\n")
    builder.write(".gitattributes", "*.py diff=traced filter=traced\n")
    trace = tmp_path / "trace"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{trace}'\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        (hooks / hook).symlink_to(program)
    for name, value in {
        "core.fsmonitor": str(program),
        "core.hooksPath": str(hooks),
        "core.pager": str(program),
        "core.quotePath": "true",
        "commit.gpgSign": "true",
        "gpg.program": str(program),
        "log.showSignature": "true",
        "log.date": "relative",
        "diff.external": str(program),
        "diff.traced.textconv": str(program),
        "diff.renames": "copies",
        "diff.noprefix": "true",
        "filter.traced.smudge": str(program),
        "alias.rev-list": f"!{program}",
        "alias.cat-file": f"!{program}",
        "color.ui": "always",
        "core.abbrev": "4",
        "grep.lineNumber": "true",
        "gc.auto": "1",
        "maintenance.auto": "true",
    }.items():
        builder.git("config", name, value)
    trace.unlink(missing_ok=True)  # what making this has run
    builder.trace = trace
    return builder


def read_everything(folder: Path, good: str = "main~2", bad: str = "main") -> CommitRange:
    with open_repository(folder) as repository:
        history = commit_range(repository, good, bad)
        for position in range(len(history)):
            tree = history.tree(position)
            tree.read("sglang/srt/mem_cache/memory_pool.py")
            assert list(tree.find("class ReqToTokenPool")) == [POOL.removeprefix("python/")]
            repository.files_touched(history.commits[position])
        SourcesOverTime(repository, history.commits).holders(["class ReqToTokenPool"])
        written_since(repository, history.commits[-1], POOL.removeprefix("python/"), 3)
    return history


def test_not_a_byte_changes_and_nothing_of_the_users_runs(messy: Any) -> None:
    before = fingerprint(messy.folder)
    history = read_everything(messy.folder)
    assert [commit.title for commit in history.commits] == ["commit 0", "commit 1", "commit 2"]
    assert fingerprint(messy.folder) == before
    assert not messy.trace.exists()


def test_the_environment_does_not_lead_elsewhere(
    messy: Any,
    new_repository: Callable[[str], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = new_repository("other")
    other.commit("elsewhere")
    names = [commit.sha for commit in read_everything(messy.folder).commits]
    for name, value in {
        "GIT_DIR": str(other.folder / ".git"),
        "GIT_WORK_TREE": str(other.folder),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(other.folder / ".git" / "objects"),
        "GIT_COMMON_DIR": str(other.folder / ".git"),
        "GIT_NAMESPACE": "x",
        "GIT_CEILING_DIRECTORIES": str(messy.folder),
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_PAGER": "false",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "maybe",
    }.items():
        monkeypatch.setenv(name, value)
    before = fingerprint(messy.folder), fingerprint(other.folder)
    assert [commit.sha for commit in read_everything(messy.folder).commits] == names
    assert (fingerprint(messy.folder), fingerprint(other.folder)) == before
    assert not (tmp_path / "index").exists()
    assert not messy.trace.exists()


def test_another_repository_s_objects_are_never_a_revert_s(
    messy: Any, new_repository: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_repository("other")
    other.commit("elsewhere")
    monkeypatch.setenv("GIT_COMMON_DIR", str(other.folder / ".git"))
    with open_repository(messy.folder) as repository:
        assert repository.objects == messy.folder / ".git" / "objects"
        assert repository.folder == messy.folder
        newest = repository.commit("main")
        conflict = revert(repository, newest, newest)
        assert isinstance(conflict, RevertedTree)
        assert conflict.read(POOL.removeprefix("python/")) == text("size")


def test_a_commit_is_what_its_id_says_and_not_what_replaces_it(messy: Any) -> None:
    def seen() -> tuple[list[str], list[str | None]]:
        with open_repository(messy.folder) as repository:
            history = commit_range(repository, "main~2", "main")
            files = [history.tree(n).read(POOL.removeprefix("python/")) for n in range(3)]
            return [commit.title for commit in history.commits], files

    before = seen()
    messy.git("replace", "main", "main~2")
    messy.git("replace", f"main:{POOL}", "main:README.md")
    assert messy.git("-c", "alias.x=log -1 --format=%s main", "x") == "commit 0"
    assert seen() == before


def test_commits_are_read_and_not_the_files_that_lie_there(messy: Any) -> None:
    with open_repository(messy.folder) as repository:
        tree = CommitTree(repository, "HEAD")
        assert tree.read(POOL.removeprefix("python/")) == text("size")
        assert tree.read("sglang/srt/untracked.py") is None


def test_a_partial_clone_is_not_filled(messy: Any, tmp_path: Path) -> None:
    messy.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    messy.git(
        *("clone", "-q", "--filter=blob:none", "--no-checkout"),
        *(f"file://{messy.folder}", str(clone)),
    )
    before = fingerprint(clone)
    with open_repository(clone) as repository:
        tree = CommitTree(repository, "origin/main")
        with pytest.raises(InfrastructureError, match="is a partial clone"):
            tree.read(POOL.removeprefix("python/"))
    assert fingerprint(clone) == before
