"""A commit of a git repository as a tree of sources, read from the object database."""

from __future__ import annotations

from collections.abc import Iterable

import git
from git.exc import BadName, BadObject

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.source_tree import SourceTree

_PACKAGE_ROOT = "python"
_NO_MATCH = 1  # what `git grep` ends with when it found nothing


class CommitTree(SourceTree):
    """One commit's sources; never looks at or touches the work tree, the index or a ref."""

    def __init__(self, repo: git.Repo, revision: str) -> None:
        self._repo = repo
        self._found: dict[tuple[str, str], list[str]] = {}
        try:
            self.commit = repo.commit(revision)
        except (BadName, BadObject, ValueError, git.GitCommandError) as error:
            where = repo.working_tree_dir or repo.git_dir
            raise UsageError(
                f"The repository {where} has no commit {revision!r}; check its spelling or "
                "fetch it."
            ) from error

    @property
    def name(self) -> str:
        return f"commit {self.commit.hexsha[:9]}"

    def read(self, path: str) -> str | None:
        try:
            blob = self.commit.tree / f"{_PACKAGE_ROOT}/{path}"
        except KeyError:
            return None
        if blob.type != "blob":
            return None
        content: bytes = blob.data_stream.read()
        return content.decode("utf-8", errors="replace")

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        if (text, under) not in self._found:
            self._found[text, under] = self._search(text, under)
        return self._found[text, under]

    def _search(self, text: str, under: str) -> list[str]:
        folder = f"{_PACKAGE_ROOT}/{under}"
        try:
            listing: str = self._repo.git.grep(
                "--no-color",
                "--full-name",
                "-I",
                "-l",
                "-z",
                "-F",
                "-e",
                text,
                self.commit.hexsha,
                "--",
                f":(top,glob){folder}/**/*.py",
            )
        except git.GitCommandError as error:
            if error.status == _NO_MATCH and not error.stderr.strip("' \n").removeprefix("stderr:"):
                return []
            raise InfrastructureError(
                f"git could not search {self.name} of {self._repo.git_dir}: {error.stderr.strip()}"
            ) from error
        prefix = f"{self.commit.hexsha}:{_PACKAGE_ROOT}/"
        return sorted(entry.removeprefix(prefix) for entry in listing.split("\0") if entry)
