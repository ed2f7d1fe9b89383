"""A commit of a git repository as a tree of sources, read from the object database."""

from __future__ import annotations

from collections.abc import Iterable

from poolbisect.history.repository import Commit, Repository
from poolbisect.history.source_tree import SourceTree

PACKAGE_ROOT = "python"
"""The folder of SGLang's repository that holds the package."""


class CommitTree(SourceTree):
    """One commit's sources; never looks at or touches the work tree, the index or a ref.

    What the commit has and the repository lacks (deleted, damaged, a partial clone) is an
    InfrastructureError and never a file that is not there.
    """

    def __init__(self, repository: Repository, commit: Commit | str) -> None:
        """UsageError when a revision names no commit."""
        self._repository = repository
        self.commit = repository.commit(commit) if isinstance(commit, str) else commit
        self._found: dict[tuple[str, str], list[str]] = {}

    @property
    def name(self) -> str:
        return f"commit {self.commit.short}"

    def read(self, path: str) -> str | None:
        blob = self._repository.git.file(self.commit.sha, f"{PACKAGE_ROOT}/{path}")
        if blob is None or blob.type != "blob":
            return None
        return blob.content.decode("utf-8", errors="replace")

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        if (text, under) not in self._found:
            self._found[text, under] = self._search(text, under)
        return self._found[text, under]

    def _search(self, text: str, under: str) -> list[str]:
        listing = self._repository.git.grep(
            *("--full-name", "-I", "-l", "-z", "-F", "-e", text, self.commit.sha),
            *("--", f":(top,glob){PACKAGE_ROOT}/{under}/**/*.py"),
        )
        prefix = f"{self.commit.sha}:{PACKAGE_ROOT}/"
        entries = listing.decode(errors="replace").split("\0")
        return sorted(entry.removeprefix(prefix) for entry in entries if entry)
