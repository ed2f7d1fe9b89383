"""A git repository of the user's: opened, asked about its commits, never changed."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType

import git

from poolbisect.errors import UsageError
from poolbisect.history.commit_dates import commit_date
from poolbisect.history.git_process import (
    GitFailed,
    GitProcess,
    neutral_environment,
    no_git,
    reason_of,
)

SHORT = 10
"""Characters of an abbreviated commit id."""

_FIELDS = ("%H", "%P", "%T", "%an", "%ad", "%cd", "%s")
_NO_REPOSITORY = "fatal: not a git repository"
# Nothing that its settings name is run here, so it may be anybody's.
_WHOEVER_OWNS_IT = ("-c", "safe.directory=*", "-c", "safe.bareRepository=all")
_NO_ANSWER = 1  # what `merge-base` ends with when the answer is no
_ABBREVIATED = re.compile(r"[0-9a-f]{4,63}")
_SUFFIX = re.compile(r"[\^~@:]")
_ENVIRONMENT = threading.Lock()


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `parents` are ids, the first one is the branch it was made on; `tree` is the id
    of its tree. Dates carry their time zone; one that the commit does not have, or that cannot be
    read, is 1970-01-01 00:00 UTC (`commit_dates.UNKNOWN`), as git itself shows it."""

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
        if name and self._is_branch_and_tag(name):
            raise UsageError(
                f"{name!r} is both a branch and a tag in {self.folder}; "
                f"say refs/heads/{name} or refs/tags/{name}."
            )
        found = self.git.read(f"{revision}^{{commit}}")
        if found is None and revision.startswith(":/"):  # a search, which takes all that follows
            found = self.git.read(revision)
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
        listing = self.git.answer(
            *("rev-list", "--encoding=UTF-8", "--date=raw", f"--format={layout}"), *arguments
        )
        # Each entry is a line "commit <id>" and the fields, each ended by a NUL.
        fields = listing.split("\0")
        for start in range(0, len(fields) - 1, len(_FIELDS)):
            first, *rest = fields[start : start + len(_FIELDS)]
            parents, tree, author, author_date, committed, title = rest
            yield Commit(
                sha=first.split("\n")[-1],
                parents=tuple(parents.split()),
                tree=tree,
                author=_printable(author),
                author_date=commit_date(author_date),
                commit_date=commit_date(committed),
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

    def _is_branch_and_tag(self, name: str) -> bool:
        refs = [f"refs/{kind}/{name}" for kind in ("heads", "tags")]
        if not all(map(self.git.read, refs)):
            return False
        # `refs/heads/v1-2-gabcdef` is a commit even where no ref has that name: git's describe.
        listing = self.git.answer("for-each-ref", "--format=%(refname)", "--", *refs)
        return set(refs) <= set(listing.splitlines())

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
    """The repository at or around `path`, as git finds it; close it after use.

    Raises:
        UsageError: there is none, or git refuses to read it.
    """
    path = Path(os.path.expanduser(path))
    missing = "" if path.exists() else "; there is no such folder"
    none = UsageError(
        f"{path} is no git repository{missing}; give the path of a clone with --repo."
    )
    if not path.is_dir():
        raise none
    try:
        git_dir = _located(path, "--absolute-git-dir")
    except GitFailed as error:
        if error.reason.startswith(_NO_REPOSITORY):
            raise none from error
        reason = error.reason.removeprefix("fatal: ").rstrip(".")
        raise UsageError(f"git refuses the repository {path}: {reason}.") from error
    with _without_git_variables(), git.Repo(git_dir, expand_vars=False) as opened:
        folder = Path(opened.working_tree_dir or git_dir)
        return Repository(git_dir, Path(opened.common_dir), folder)


@contextmanager
def _without_git_variables() -> Iterator[None]:
    """GitPython obeys GIT_COMMON_DIR and its like, which would be another repository's."""
    with _ENVIRONMENT:
        kept = {name: os.environ.pop(name) for name in list(os.environ) if name[:4] == "GIT_"}
        try:
            yield
        finally:
            os.environ.update(kept)


def _located(path: Path, what: str) -> Path:
    """A path that `git rev-parse` says of the repository around `path`."""
    command = ["git", *_WHOEVER_OWNS_IT, "-C", str(path), "rev-parse", what]
    # Without it a clone on another file system than the folder above would not be found.
    environment = neutral_environment() | {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1"}
    try:
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
    except OSError as error:
        raise no_git(error) from error
    if done.returncode:
        raise GitFailed(done.returncode, reason_of(done))
    return _path(done.stdout)


def _path(output: bytes) -> Path:
    return Path(os.fsdecode(output.removesuffix(b"\n")))
