"""A git repository of the user's: opened, asked about its commits, never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType

import git

from poolbisect.errors import UsageError
from poolbisect.history.git_process import GitFailed, GitProcess

SHORT = 10
"""Characters of an abbreviated commit id."""

_FIELDS = ("%H", "%P", "%T", "%an", "%aI", "%cI", "%s")
_NO_ANSWER = 1  # what `merge-base` ends with when the answer is no
_ABBREVIATED = re.compile(r"[0-9a-f]{4,63}")
_SUFFIX = re.compile(r"[\^~@:]")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `parents` are ids, the first one is the branch it was made on; dates carry
    their time zone; `tree` is the id of its tree."""

    sha: str
    parents: tuple[str, ...]
    tree: str
    author: str
    author_date: datetime
    commit_date: datetime
    title: str

    @property
    def short(self) -> str:
        return self.sha[:SHORT]

    def __str__(self) -> str:
        return f"{self.short} ({self.commit_date:%Y-%m-%d}, {self.title})"


class Repository:
    """Commits, ancestry and objects of one repository, bare or not. One thread at a time."""

    def __init__(self, git_dir: Path, common_dir: Path, folder: Path) -> None:
        self.folder = folder
        self.git = GitProcess(git_dir)
        self._common_dir = common_dir

    def __enter__(self) -> Repository:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.git.close()

    def again(self) -> Repository:
        """The same repository for another thread."""
        return Repository(self.git.git_dir, self._common_dir, self.folder)

    @property
    def objects(self) -> Path:
        """The folder of the object database."""
        return self._common_dir / "objects"

    @property
    def is_shallow(self) -> bool:
        """Whether the history was cut off when it was cloned or fetched."""
        file = self._common_dir / "shallow"
        return file.is_file() and file.stat().st_size > 0

    def commit(self, revision: str) -> Commit:
        """The commit a revision names, in any of git's notations.

        Raises:
            UsageError: there is none; the abbreviation fits several; or a tag and a branch have
                that name.
        """
        name = _SUFFIX.split(revision)[0]
        if name and all(self.git.read(f"refs/{kind}/{name}") for kind in ("heads", "tags")):
            raise UsageError(
                f"{name!r} is both a branch and a tag in {self.folder}; "
                f"say refs/heads/{name} or refs/tags/{name}."
            )
        found = self.git.read(f"{revision}^{{commit}}")
        if found is not None and found.type == "commit":
            return next(self.commits(["--no-walk", found.id]))
        if _ABBREVIATED.fullmatch(name):
            self._refuse_ambiguous(name)
        if self.is_shallow:
            raise UsageError(
                f"The repository {self.folder} has no commit {revision!r}, and it is a shallow "
                f"clone whose older history is missing; {self.unshallow}."
            )
        raise UsageError(
            f"The repository {self.folder} has no commit {revision!r}; check its spelling or "
            "fetch it."
        )

    @property
    def unshallow(self) -> str:
        """What to do about a shallow clone."""
        return f"complete it with `git -C '{self.folder}' fetch --unshallow`"

    def commits(self, arguments: Sequence[str]) -> Iterator[Commit]:
        """The commits that `git rev-list` lists for these arguments, in its order."""
        layout = "%x00".join(_FIELDS) + "%x00"
        listing = self.git.answer("rev-list", "--encoding=UTF-8", f"--format={layout}", *arguments)
        # Each entry is a line "commit <id>" and the fields, each ended by a NUL.
        fields = listing.split("\0")
        for start in range(0, len(fields) - 1, len(_FIELDS)):
            first, *rest = fields[start : start + len(_FIELDS)]
            parents, tree, author, author_date, commit_date, title = rest
            yield Commit(
                sha=first.split("\n")[-1],
                parents=tuple(parents.split()),
                tree=tree,
                author=_printable(author),
                author_date=datetime.fromisoformat(author_date),
                commit_date=datetime.fromisoformat(commit_date),
                title=_printable(title),
            )

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        """Whether `newer` contains `older`; a commit contains itself."""
        try:
            self.git.run("merge-base", "--is-ancestor", older.sha, newer.sha)
        except GitFailed as error:
            if error.status == _NO_ANSWER:
                return False
            raise self.git.broken(error.reason) from error
        return True

    def merge_base(self, one: Commit, other: Commit) -> Commit | None:
        """The best common ancestor, None for unrelated histories."""
        try:
            bases = self.git.run("merge-base", one.sha, other.sha).decode().split()
        except GitFailed as error:
            if error.status == _NO_ANSWER:
                return None
            raise self.git.broken(error.reason) from error
        return self.commit(bases[0])

    def files_touched(self, commit: Commit) -> tuple[str, ...]:
        """Paths, from the repository's root, that differ from the first parent."""
        options = ("-r", "-z", "--no-commit-id", "--no-renames", "--name-only", "--root")
        ends = (*commit.parents[:1], commit.sha)
        listing = self.git.answer("diff-tree", *options, *ends)
        return tuple(path for path in listing.split("\0") if path)

    def _refuse_ambiguous(self, prefix: str) -> None:
        ids = self.git.answer("rev-parse", f"--disambiguate={prefix}").split()
        known = [self.git.read(id) for id in ids]
        commits = [found.id for found in known if found is not None and found.type == "commit"]
        if len(commits) > 1:
            listed = ", ".join(f"{id[:16]}" for id in commits[:4])
            more = ", …" if len(commits) > 4 else ""
            raise UsageError(
                f"{prefix!r} abbreviates {len(commits)} commits of {self.folder} "
                f"({listed}{more}); give more characters."
            )


def _printable(text: str) -> str:
    """Text that a terminal shows as it stands, whatever a commit's author put there."""
    return "".join(character if character.isprintable() else " " for character in text)


def open_repository(path: Path) -> Repository:
    """The repository at or around `path`; close it after use.

    Raises:
        UsageError: there is none, or git refuses to read it.
    """
    try:
        with git.Repo(path, search_parent_directories=True, expand_vars=False) as opened:
            folder = Path(opened.working_tree_dir or opened.git_dir)
            repository = Repository(Path(opened.git_dir), Path(opened.common_dir), folder)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, OSError) as error:
        missing = "" if path.exists() else "; there is no such folder"
        raise UsageError(
            f"{path} is no git repository{missing}; give the path of a clone with --repo."
        ) from error
    try:
        repository.git.run("rev-parse", "--git-dir")
    except GitFailed as error:
        raise UsageError(f"git refuses the repository {folder}: {error.reason}.") from error
    return repository
