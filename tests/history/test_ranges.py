"""A range is refused with its own message before anything costly, or is exactly what was asked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from poolbisect.errors import UsageError
from poolbisect.history.ranges import CommitRange, commit_range
from poolbisect.history.repository import Repository, open_repository


@pytest.fixture
def opened() -> Iterator[Callable[[Path], Repository]]:
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(open_repository(path))


@pytest.fixture
def line(builder: Any) -> list[str]:
    """Five commits on one line."""
    return [builder.commit(f"commit {number}", {"f.txt": str(number)}) for number in range(5)]


def shas(history: CommitRange) -> list[str]:
    return [commit.sha for commit in history.commits]


def refusal(repository: Repository, good: str, bad: str, **options: Any) -> str:
    with pytest.raises(UsageError) as raised:
        commit_range(repository, good, bad, **options)
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    assert raised.value.exit_code == 2
    return message


def test_a_range_holds_both_ends_and_all_between_oldest_first(
    builder: Any, line: list[str], opened: Callable[[Path], Repository]
) -> None:
    history = commit_range(opened(builder.folder), line[1][:12], "main~1")
    assert shas(history) == line[1:4]
    assert [entry.title for entry in history.entries] == ["commit 1", "commit 2", "commit 3"]
    assert [history.parents(position) for position in range(3)] == [(), (0,), (1,)]
    assert len(history) == 3
    first = history.commits[0]
    assert (first.author, first.short) == ("Somebody", line[1][:10])
    assert first.commit_date.isoformat().endswith("+02:00")
    assert history.position(first) == 0
    assert history.repository.files_touched(first) == ("f.txt",)


def test_the_first_commit_of_all_touches_what_it_adds(
    builder: Any, line: list[str], opened: Callable[[Path], Repository]
) -> None:
    repository = opened(builder.folder)
    assert repository.files_touched(repository.commit(line[0])) == ("f.txt",)


@pytest.mark.parametrize(
    ("notation", "number"),
    [
        *((":/commit 3", 3), (":/t 1", 1), ("main^{/commit 2}", 2), ("v1", 1), ("v1^{}", 1)),
        *(("main@{0}", 4), ("@~1", 3), ("main^^", 2), ("v1^0", 1), ("v1-2-g", 3)),
    ],
)
def test_any_of_git_s_notations_names_a_commit(
    builder: Any,
    line: list[str],
    opened: Callable[[Path], Repository],
    notation: str,
    number: int,
) -> None:
    builder.git("tag", "-a", "-m", "annotated", "v1", line[1])
    described = f"{notation}{line[number][:12]}" if notation.endswith("-g") else notation
    assert opened(builder.folder).commit(described).sha == line[number]


class TestMerges:
    @pytest.fixture
    def merged(self, builder: Any) -> dict[str, str]:
        """base, one commit on main, two on a branch, their merge, one more."""
        made = {"base": builder.commit("base")}
        builder.git("checkout", "-q", "-b", "topic")
        made["inner 1"] = builder.commit("inner 1", {"inner.txt": "1"})
        made["inner 2"] = builder.commit("inner 2", {"inner.txt": "2"})
        builder.git("checkout", "-q", "main")
        made["main 1"] = builder.commit("main 1", {"main.txt": "1"})
        builder.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
        made["merge"] = builder.git("rev-parse", "HEAD")
        made["main 2"] = builder.commit("main 2")
        return made

    def test_first_parents_only_by_default(
        self, builder: Any, merged: dict[str, str], opened: Callable[[Path], Repository]
    ) -> None:
        history = commit_range(opened(builder.folder), merged["base"], "main")
        titles = [commit.title for commit in history.commits]
        assert titles == ["base", "main 1", "merge", "main 2"]
        assert history.parents(2) == (1,)

    def test_all_parents_goes_inside_and_keeps_parents_first(
        self, builder: Any, merged: dict[str, str], opened: Callable[[Path], Repository]
    ) -> None:
        repository = opened(builder.folder)
        history = commit_range(repository, merged["base"], "main", all_parents=True)
        assert set(shas(history)) == set(merged.values())
        assert all(p < position for position in range(6) for p in history.parents(position))
        merge = history.position(repository.commit(merged["merge"]))
        assert merge is not None
        assert len(history.parents(merge)) == 2

    def test_a_good_end_inside_a_merge_is_compared_with_what_main_had(
        self, builder: Any, merged: dict[str, str], opened: Callable[[Path], Repository]
    ) -> None:
        history = commit_range(opened(builder.folder), merged["inner 2"], "main")
        assert shas(history)[0] == merged["inner 2"]
        assert shas(history)[1:] == [merged["main 1"], merged["merge"], merged["main 2"]]
        assert [entry.name for entry in history.outside] == [merged["base"]]
        assert history.parents(1) == (len(history),)
        assert history.tree(len(history)).name == f"commit {merged['base'][:10]}"


class TestRefusals:
    def test_the_same_commit_twice(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        assert "the same commit" in refusal(opened(builder.folder), "main", line[-1])

    def test_good_newer_than_bad_offers_the_first_fixed(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        message = refusal(opened(builder.folder), "main", "main~2")
        assert "newer than" in message
        assert "--find fixed" in message

    def test_looking_for_a_fix_offers_the_opposite(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        options = {"older_option": "--bad", "newer_option": "--good"}
        message = refusal(opened(builder.folder), "main", "main~2", **options)
        assert message.startswith("--bad main is newer than --good main~2")
        assert "--find introduced" in message

    def test_branches_that_parted_name_where(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("checkout", "-q", "-b", "side", line[2])
        builder.commit("side")
        message = refusal(opened(builder.folder), "side", "main")
        assert "not an ancestor" in message
        assert f"{line[2][:10]} " in message
        assert "commit 2" in message

    def test_unrelated_histories(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("checkout", "-q", "--orphan", "other")
        builder.commit("other")
        assert "no common history" in refusal(opened(builder.folder), "other", "main")

    @pytest.mark.parametrize(
        "name",
        [
            *("nowhere", "deadbeef", "main~9", "-x", "", "main:f.txt", "a b", "x\ny", "main..x"),
            *(":/nothing", "^main", "--all"),
        ],
    )
    def test_a_name_that_is_no_commit(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository], name: str
    ) -> None:
        message = refusal(opened(builder.folder), name, "main")
        assert f"no commit {name!r}" in message

    def test_an_abbreviation_of_several_commits_lists_them(
        self, builder: Any, opened: Callable[[Path], Repository]
    ) -> None:
        count = 1500
        stream = "".join(
            f"commit refs/heads/many\ncommitter S <s@example.org> {number} +0000\n"
            f"data 1\n{number % 10}\n\n"
            for number in range(1, count)
        )
        builder.git("fast-import", "--quiet", stdin=stream)
        ids = builder.git("rev-list", "many").split()
        by_prefix: dict[str, list[str]] = {}
        for sha in ids:
            by_prefix.setdefault(sha[:4], []).append(sha)
        prefix, both = next((p, found) for p, found in by_prefix.items() if len(found) > 1)
        message = refusal(opened(builder.folder), prefix, "many")
        assert f"{prefix!r} abbreviates {len(both)} commits" in message
        assert all(sha[:16] in message for sha in both)

    def test_a_tag_and_a_branch_of_one_name(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("tag", "both", line[1])
        builder.git("branch", "both", line[3])
        repository = opened(builder.folder)
        for name in ("both", "both^"):
            message = refusal(repository, name, "main")
            assert "refs/heads/both or refs/tags/both" in message
        assert shas(commit_range(repository, "refs/tags/both", "refs/heads/both")) == line[1:4]

    def test_no_repository(self, tmp_path: Path, opened: Callable[[Path], Repository]) -> None:
        with pytest.raises(UsageError, match="is no git repository; give"):
            opened(tmp_path)
        with pytest.raises(UsageError, match="there is no such folder"):
            opened(tmp_path / "nowhere")
        (tmp_path / "broken" / ".git").mkdir(parents=True)
        with pytest.raises(UsageError, match="no git repository"):
            opened(tmp_path / "broken")


class TestShallowClones:
    @pytest.fixture
    def shallow(self, builder: Any, line: list[str], tmp_path: Path) -> Path:
        clone = tmp_path / "shallow"
        builder.git("clone", "-q", "--depth=2", f"file://{builder.folder}", str(clone))
        return clone

    def test_a_good_end_outside_names_the_command(
        self, shallow: Path, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        for good in (line[0], "main~3"):
            message = refusal(opened(shallow), good, "main")
            assert "shallow" in message
            assert re.search(r"`git -C '.*shallow' fetch --unshallow`", message)

    def test_a_good_end_that_was_cut_off_its_line_is_no_wrong_answer(
        self, builder: Any, shallow: Path, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("-C", str(shallow), "fetch", "-q", "--depth=1", "origin", line[0])
        assert "fetch --unshallow" in refusal(opened(shallow), line[0], "main")

    def test_a_range_inside_works(
        self, shallow: Path, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        assert shas(commit_range(opened(shallow), "main~1", "main")) == line[3:]


class TestKindsOfRepository:
    def test_bare(
        self, builder: Any, line: list[str], tmp_path: Path, opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("clone", "-q", "--bare", str(builder.folder), str(tmp_path / "bär.git"))
        assert shas(commit_range(opened(tmp_path / "bär.git"), line[0], "main")) == line

    def test_from_a_folder_inside(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        (builder.folder / "deep" / "er").mkdir(parents=True)
        assert shas(commit_range(opened(builder.folder / "deep" / "er"), line[0], "main")) == line

    def test_somebody_else_s(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        for path in (builder.folder, *builder.folder.rglob("*")):
            os.chown(path, 12345, 12345)
        assert shas(commit_range(opened(builder.folder), line[0], "main")) == line

    def test_one_that_git_refuses_says_why(
        self, builder: Any, opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("config", "core.repositoryFormatVersion", "99")
        with pytest.raises(UsageError, match=r"^git refuses the repository .*99"):
            opened(builder.folder)

    def test_a_linked_work_tree_has_its_own_head(
        self, builder: Any, line: list[str], tmp_path: Path, opened: Callable[[Path], Repository]
    ) -> None:
        builder.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"), line[2])
        assert shas(commit_range(opened(tmp_path / "linked"), line[0], "HEAD")) == line[:3]

    def test_titles_and_names_in_any_script(
        self, builder: Any, line: list[str], opened: Callable[[Path], Repository]
    ) -> None:
        title = "修正, naïve „quotes“ $HOME `x` \x1b[31m red"
        builder.git("-c", "i18n.commitEncoding=UTF-8", "commit", "--allow-empty", "-m", title)
        history = commit_range(opened(builder.folder), line[0], "main")
        assert history.entries[-1].title == title.replace("\x1b", " ")  # no escapes
        assert history.entries[-1].title.startswith("修正, naïve „quotes“ $HOME `x`")
