"""What a repository lacks is the host's failure: never a file that is not there, never good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.history.commits import CommitTree
from poolbisect.history.remarks import remark
from poolbisect.history.repository import Repository, open_repository
from poolbisect.history.sources_over_time import SourcesOverTime
from poolbisect.history.written_since import written_since

POOL = "sglang/srt/mem_cache/memory_pool.py"
OTHER = "sglang/srt/other.py"
NEEDED = "requirements.txt"


def source(rows: str) -> str:
    return f"class ReqToTokenPool:\n    def start(self):\n        self.table = empty(({rows}, 4))\n"


@pytest.fixture
def made(builder: Any) -> Any:
    for number in range(2):
        builder.commit(
            f"commit {number}",
            {
                f"python/{POOL}": source(f"size + {number}"),
                f"python/{OTHER}": "class ReqToTokenPool2: pass\n",
            },
        )
    builder.commit("pins", {NEEDED: "torch==2.1\n"})
    return builder


def unlink(builder: Any, name: str) -> None:
    object_file(builder, name).unlink()


def damage(builder: Any, name: str) -> None:
    file = object_file(builder, name)
    file.chmod(0o644)
    file.write_bytes(b"not an object")


def object_file(builder: Any, name: str) -> Path:
    found = builder.git("rev-parse", "--verify", name)
    file: Path = builder.folder / ".git" / "objects" / found[:2] / found[2:]
    assert file.is_file()
    return file


@pytest.fixture
def opened(made: Any) -> Iterator[Repository]:
    with open_repository(made.folder) as repository:
        yield repository


Break = Callable[[Any, str], None]


@pytest.mark.parametrize("spoil", [unlink, damage])
@pytest.mark.parametrize("name", [f"main:python/{POOL}", "main:python/sglang/srt", "main^{tree}"])
def test_a_file_whose_blob_or_tree_is_gone_is_not_absent(
    made: Any, opened: Repository, spoil: Break, name: str
) -> None:
    tree = CommitTree(opened, "main")
    spoil(made, name)
    with pytest.raises(InfrastructureError, match="git fsck") as raised:
        tree.read(POOL)
    assert POOL in str(raised.value)
    with pytest.raises(InfrastructureError, match="git fsck"):
        tree.find("class ReqToTokenPool")
    with pytest.raises(InfrastructureError, match="git fsck"):
        tree.find("nowhere at all")


def test_what_the_commit_does_not_have_is_absent_whatever_else_is_gone(
    made: Any, opened: Repository
) -> None:
    module = made.git("rev-parse", "HEAD")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{module[::-1]},python/sglang/srt/sub")
    made.git("commit", "-q", "-m", "a submodule")
    tree = CommitTree(opened, "main")
    unlink(made, f"main:python/{POOL}")
    for path in (
        *("sglang/srt/nowhere.py", "sglang/nowhere/deeper/still.py"),
        *("sglang/srt/sub", "sglang/srt/sub/inside.py", f"{OTHER}/inside.py"),
    ):
        assert tree.read(path) is None
    assert tree.read(OTHER) == "class ReqToTokenPool2: pass\n"
    with pytest.raises(InfrastructureError):
        tree.read(POOL)


@pytest.mark.parametrize("spoil", [unlink, damage])
def test_a_whole_history_says_so_too(made: Any, opened: Repository, spoil: Break) -> None:
    newest = opened.commit("main")
    commits = [opened.commit(f"main~{back}") for back in (2, 1)]
    spoil(made, f"main~2:python/{POOL}")
    with pytest.raises(InfrastructureError, match="git fsck"):
        SourcesOverTime(opened, commits).holders(["class ReqToTokenPool"])
    with pytest.raises(InfrastructureError, match="git fsck"):
        written_since(opened, newest, POOL, 3)
    spoil(made, "main~2:python/sglang/srt")
    with pytest.raises(InfrastructureError, match="git fsck"):
        _ = SourcesOverTime(opened, commits).changes


def test_a_culprit_whose_pins_cannot_be_read_is_named_without_a_remark(
    made: Any, opened: Repository
) -> None:
    commit = opened.commit("main")
    assert "torch" in remark(opened, commit)
    unlink(made, f"main:{NEEDED}")
    assert remark(opened, commit) == ""
