"""What changes between commits, followed without a checkout, is what each commit holds."""

from __future__ import annotations

from typing import Any

import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.history.repository import open_repository
from poolbisect.history.sources_over_time import SourcesOverTime

A, B, C = (f"python/sglang/srt/{name}.py" for name in ("a", "deep/b", "ü c"))


@pytest.fixture
def ids(builder: Any) -> list[str]:
    """Files that come, change, move, go, come back, and turn into a folder."""
    made = [
        builder.commit("two", {A: "alpha", B: "beta", "docs/x.py": "alpha"}),
        builder.commit("change", {A: "alpha beta"}),
        builder.commit("no source", {"README.md": "alpha", "python/x.txt": "alpha"}),
    ]
    builder.git("mv", A, B.replace("b.py", "moved.py"))
    made += [
        builder.commit("move", {C: "gamma"}),
        builder.commit("gone", {B: None}),
        builder.commit("nothing"),
        builder.commit("back", {B: "beta", A: "alpha"}),
    ]
    builder.git("update-index", "--chmod=+x", A)
    made += [builder.commit("mode"), builder.commit("folder", {A: None, f"{A}/inner.py": "alpha"})]
    return made


def test_each_state_is_what_git_lists(builder: Any, ids: list[str]) -> None:
    with open_repository(builder.folder) as repository:
        commits = [repository.commit(sha) for sha in ids]
        states = [dict(state) for state in SourcesOverTime(repository, commits).walk()]
    for sha, state in zip(ids, states, strict=True):
        listing = builder.git("-c", "core.quotePath=false", "ls-tree", "-r", sha, "python")
        expected = {}
        for entry in listing.splitlines():
            description, path = entry.split("\t")
            if path.endswith(".py"):
                expected[path.removeprefix("python/")] = description.split()[2]
        assert state == expected


def test_commits_need_not_be_neighbours(builder: Any, ids: list[str]) -> None:
    with open_repository(builder.folder) as repository:
        commits = [repository.commit(ids[number]) for number in (7, 0, 4)]
        states = [dict(state) for state in SourcesOverTime(repository, commits).walk()]
        alone = [next(SourcesOverTime(repository, [commit]).walk()) for commit in commits]
    assert states == alone


def test_holders_are_the_blobs_below_the_folder_with_the_text(builder: Any, ids: list[str]) -> None:
    with open_repository(builder.folder) as repository:
        sources = SourcesOverTime(repository, [repository.commit(sha) for sha in ids])
        found = sources.holders(["alpha", "gamma", "nowhere"])
        deep = sources.holders(["alpha"], under="sglang/srt/deep")
        every = {
            blob: repository.git.read(blob).content.decode()  # type: ignore[union-attr]
            for state in map(dict, sources.walk())
            for blob in state.values()
        }
    assert {text: set(blobs) for text, blobs in found.items()} == {
        text: {blob for blob, content in every.items() if text in content}
        for text in ("alpha", "gamma", "nowhere")
    }
    assert {every[blob] for blob in deep["alpha"]} == {"alpha beta"}


def test_a_missing_object_is_said_and_not_taken_for_an_empty_file(
    builder: Any, ids: list[str]
) -> None:
    blob = builder.git("rev-parse", f"{ids[3]}:{C}")
    (builder.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with open_repository(builder.folder) as repository:
        sources = SourcesOverTime(repository, [repository.commit(sha) for sha in ids])
        with pytest.raises(InfrastructureError, match=blob):
            sources.holders(["alpha"])
