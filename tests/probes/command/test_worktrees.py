"""A work tree holds its commit and nothing else, and the user's repository does not notice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.repository import Repository, open_repository
from poolbisect.probes.command.worktrees import Worktrees

_CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def git(folder: Path, *arguments: str) -> str:
    clean = {**_CLEAN, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=clean, check=True, capture_output=True, text=True
    )
    return done.stdout


def contents(tree: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(tree)): path.read_bytes()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and path.name != ".git"
    }


def committed(repository: Repository, revision: str) -> dict[str, bytes]:
    names = repository.git.answer("ls-tree", "-r", "-z", "--name-only", revision).split("\0")[:-1]
    found = {name: repository.git.read(f"{revision}:{name}") for name in sorted(names)}
    return {name: blob.content for name, blob in found.items() if blob is not None}


@pytest.fixture
def own(builder: Any, tmp_path: Path) -> Any:
    """Worktrees of the repository of `builder`, made when called."""
    opened = []

    def make(**more: Any) -> Worktrees:
        repository = open_repository(builder.folder)
        worktrees = Worktrees(repository, tmp_path / "trees", **more)
        opened.append(worktrees)
        return worktrees

    yield make
    for worktrees in opened:
        worktrees.close()
    assert not (tmp_path / "trees").exists()


def test_not_a_byte_of_the_repository_changes_and_nothing_of_the_users_runs(
    hostile: Any, own: Any, fingerprint: Callable[[Path], Any]
) -> None:
    before = fingerprint(hostile.folder)
    with own() as worktrees:
        for name in (*hostile.commits, *reversed(hostile.commits)):
            commit = worktrees.repository.commit(name)
            assert contents(worktrees.at(commit)) == committed(worktrees.repository, name)
            assert contents(worktrees.separate(commit)) == committed(worktrees.repository, name)
    assert fingerprint(hostile.folder) == before
    assert not hostile.trace.exists()


def test_the_environment_does_not_lead_elsewhere(
    hostile: Any, own: Any, fingerprint: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(hostile.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(hostile.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(hostile.folder / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(hostile.folder / ".git" / "objects"))
    before = fingerprint(hostile.folder)
    with own() as worktrees:
        commit = worktrees.repository.commit(hostile.commits[0])
        assert (worktrees.at(commit) / "state.txt").read_text() == "good\n"
    assert fingerprint(hostile.folder) == before


def test_attributes_of_the_commit_count_and_those_of_the_user_do_not(
    builder: Any, own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "attributes").write_text("*.txt text eol=crlf\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    attributes = "*.bat text eol=crlf\n*.id ident\n"
    builder.commit(
        "one", {".gitattributes": attributes, "a.bat": "x\ny\n", "a.txt": "x\n", "a.id": "$Id$\n"}
    )
    tree = own().at(open_repository(builder.folder).commit("HEAD"))
    assert (tree / "a.bat").read_bytes() == b"x\r\ny\r\n"
    assert (tree / "a.txt").read_bytes() == b"x\n"
    assert (tree / "a.id").read_bytes().startswith(b"$Id: ")


def test_what_a_command_left_is_gone_at_the_next_commit(builder: Any, own: Any) -> None:
    attributes = "c.txt filter=upper\n"
    files = {"a/b.txt": "1\n", "c.txt": "c\n", ".gitignore": "*.o\n", ".gitattributes": attributes}
    builder.commit("one", files)
    second = builder.commit("two", {"a/b.txt": "2\n", "new/deep.txt": "deep\n"})
    worktrees = own()
    repository = worktrees.repository
    tree = worktrees.at(repository.commit("HEAD~1"))
    (tree / "new").write_text("a file where the next commit has a folder")
    (tree / "c.txt").unlink()
    (tree / "c.txt").mkdir()
    (tree / "c.txt" / "inside").write_text("x")
    (tree / "product.o").write_text("ignored")
    (tree / "a" / "__pycache__").mkdir()
    (tree / "a" / "__pycache__" / "b.pyc").write_bytes(b"stale")
    (tree / "nested").mkdir()
    git(tree / "nested", "init", "-q")
    (tree / "empty").mkdir()
    (tree / "outside").symlink_to(builder.folder)
    locked = tree / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    locked.chmod(0o500)
    git(tree, "config", "filter.upper.smudge", "tr a-z A-Z")
    git(tree, "update-index", "--skip-worktree", ".gitignore")
    (tree / ".gitignore").write_text("changed")
    (tree.parent / "git" / "index.lock").write_text("")
    assert worktrees.at(repository.commit(second)) == tree
    assert contents(tree) == committed(repository, second)
    assert sorted(path.name for path in tree.iterdir()) == [
        *(".git", ".gitattributes", ".gitignore", "a", "c.txt", "new"),
    ]
    assert git(tree, "status", "--porcelain") == ""
    assert (builder.folder / ".git").is_dir()


def test_git_in_the_work_tree_knows_commit_tags_and_history(builder: Any, own: Any) -> None:
    builder.commit("one", {"a.txt": "1\n"})
    builder.git("tag", "v1.0")
    builder.git("tag", "-a", "v1.1", "-m", "annotated")
    builder.commit("two", {"a.txt": "2\n"})
    tree = own().at(open_repository(builder.folder).commit("HEAD"))
    assert git(tree, "rev-parse", "HEAD") == builder.git("rev-parse", "HEAD") + "\n"
    assert git(tree, "describe", "--tags").startswith("v1.1-1-g")
    assert git(tree, "log", "--format=%s") == "two\none\n"


def test_a_command_that_commits_or_checks_out_does_not_reach_the_user(
    builder: Any, own: Any, fingerprint: Callable[[Path], Any]
) -> None:
    builder.commit("one", {"a.txt": "1\n"})
    builder.commit("two", {"a.txt": "2\n"})
    before = fingerprint(builder.folder)
    worktrees = own()
    commit = worktrees.repository.commit("HEAD")
    tree = worktrees.at(commit)
    git(tree, "checkout", "-q", "HEAD~1")
    (tree / "a.txt").write_text("mine\n")
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    git(tree, *who, "commit", "-q", "-a", "-m", "mine")
    git(tree, "gc", "-q")
    assert (worktrees.at(commit) / "a.txt").read_text() == "2\n"
    assert git(tree, "rev-parse", "HEAD").strip() == commit.sha
    assert fingerprint(builder.folder) == before


def test_build_products_may_be_kept_but_never_bytecode(builder: Any, own: Any) -> None:
    builder.commit("one", {"m.py": "x = 1\n", ".gitignore": "*.o\n__pycache__/\n"})
    builder.commit("two", {"m.py": "x = 2\n"})
    worktrees = own(keep_build=True)
    tree = worktrees.at(worktrees.repository.commit("HEAD~1"))
    (tree / "product.o").write_text("kept")
    (tree / "note.txt").write_text("not ignored, so not a product")
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "m.pyc").write_bytes(b"stale")
    worktrees.at(worktrees.repository.commit("HEAD"))
    assert sorted(path.name for path in tree.iterdir()) == [
        *(".git", ".gitignore", "m.py", "product.o"),
    ]


def test_a_broken_work_tree_is_made_anew(builder: Any, own: Any) -> None:
    builder.commit("one", {"a.txt": "1\n"})
    worktrees = own()
    commit = worktrees.repository.commit("HEAD")
    tree = worktrees.at(commit)
    (tree.parent / "git" / "objects" / "info" / "alternates").unlink()
    (tree.parent / "index").write_bytes(b"damaged")
    assert contents(worktrees.at(commit)) == {"a.txt": b"1\n"}


def test_links_and_modes_are_the_commits(builder: Any, own: Any) -> None:
    builder.write("run.sh", "#!/bin/sh\n")
    (builder.folder / "run.sh").chmod(0o755)
    (builder.folder / "link").symlink_to("run.sh")
    builder.commit("one")
    tree = own().at(open_repository(builder.folder).commit("HEAD"))
    assert os.access(tree / "run.sh", os.X_OK)
    assert os.readlink(tree / "link") == "run.sh"


def test_submodules_are_left_empty_and_said(
    builder: Any, own: Any, new_repository: Callable[[str], Any]
) -> None:
    other = new_repository("other")
    other.commit("inner", {"inner.txt": "x"})
    builder.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", other.folder, "sub ä")
    builder.commit("with a submodule", {"a.txt": "1\n"})
    worktrees = own()
    commit = worktrees.repository.commit("HEAD")
    assert list((worktrees.at(commit) / "sub ä").iterdir()) == []
    assert worktrees.submodules(commit) == ("sub ä",)


def test_a_shallow_clone_will_do(builder: Any, tmp_path: Path) -> None:
    for number in range(3):
        builder.commit(str(number), {"a.txt": f"{number}\n"})
    clone = tmp_path / "shallow"
    builder.git("clone", "-q", "--depth=2", f"file://{builder.folder}", str(clone))
    with (
        open_repository(clone) as repository,
        Worktrees(repository, tmp_path / "trees") as worktrees,
    ):
        tree = worktrees.at(repository.commit("HEAD~1"))
        assert (tree / "a.txt").read_text() == "1\n"
        assert git(tree, "log", "--format=%s") == "1\n"


def test_a_partial_clone_is_named_and_not_filled(
    builder: Any, tmp_path: Path, fingerprint: Callable[[Path], Any]
) -> None:
    for number in range(2):
        builder.commit(str(number), {"a.txt": f"{number}\n"})
    builder.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    source = f"file://{builder.folder}"
    builder.git("clone", "-q", "--filter=blob:none", "--no-checkout", source, str(clone))
    before = fingerprint(clone)
    with (
        open_repository(clone) as repository,
        Worktrees(repository, tmp_path / "trees") as worktrees,
        pytest.raises(InfrastructureError, match=r"partial clone that lacks files of \w{10}"),
    ):
        worktrees.at(repository.commit("HEAD"))
    assert fingerprint(clone) == before


@pytest.mark.parametrize("name", ['quo"te', "#sharp", "new\nline", "tab\tand space", "ünï"])
def test_any_path_can_lead_to_the_objects(tmp_path: Path, new_repository: Any, name: str) -> None:
    builder = new_repository(f"{name}/repo")
    builder.commit("one", {"a.txt": "1\n"})
    with (
        open_repository(builder.folder) as repository,
        Worktrees(repository, tmp_path / f"trees {name}") as worktrees,
    ):
        assert contents(worktrees.at(repository.commit("HEAD"))) == {"a.txt": b"1\n"}


def test_repositories_of_long_ids_and_bare_ones(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    git(folder, "init", "-q", "--object-format=sha256")
    (folder / "a.txt").write_text("1\n")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "one")
    git(folder, "clone", "-q", "--bare", str(folder), str(tmp_path / "bare"))
    for number, place in enumerate((folder, tmp_path / "bare")):
        with (
            open_repository(place) as repository,
            Worktrees(repository, tmp_path / f"trees{number}") as worktrees,
        ):
            assert (worktrees.at(repository.commit("HEAD")) / "a.txt").read_text() == "1\n"


def test_what_a_killed_run_left_is_taken_over(builder: Any, own: Any) -> None:
    builder.commit("one", {"a.txt": "1\n"})
    killed = own()
    tree = killed.at(killed.repository.commit("HEAD"))
    (tree / "junk").write_text("x")
    (tree.parent / "index.lock").write_text("")
    again = own()
    assert contents(again.at(again.repository.commit("HEAD"))) == {"a.txt": b"1\n"}


def test_a_folder_of_somebody_elses_is_not_taken_over(builder: Any, tmp_path: Path) -> None:
    builder.commit("one", {"a.txt": "1\n"})
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("years of work")
    with (
        open_repository(builder.folder) as repository,
        pytest.raises(UsageError, match="not poolbisect's"),
    ):
        Worktrees(repository, tmp_path / "theirs")
    assert (tmp_path / "theirs" / "thesis.txt").read_text() == "years of work"
