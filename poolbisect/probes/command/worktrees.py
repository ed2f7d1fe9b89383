"""Work trees of our own for commits of a user's repository, which is read and never written."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.repository import Commit, Repository
from poolbisect.probes.command.own_git import OwnGit
from poolbisect.probes.command.removal import remove_tree

_MARK = "poolbisect-worktrees"
_SHARED, _SEPARATE = "shared", "commits"


class Worktrees:
    """Folders that hold commits of `repository`, all below `folder`, which is ours alone.

    Each has a git directory of its own beside it, which borrows the user's objects; nothing is
    written into the user's repository, not even an entry in its list of work trees, and none of
    its hooks, filters and settings, nor the user's, take effect: a file is what the commit and
    its .gitattributes say. Tags are copied, so that `git describe` works there. Submodules are
    empty folders. One thread at a time.

    `keep_build`: leave ignored files, such as build products, where they are between commits.
    """

    def __init__(self, repository: Repository, folder: Path, *, keep_build: bool = False) -> None:
        """Take over `folder`; what a killed run has left there is removed.

        Raises:
            UsageError: the folder holds something that is not ours.
            InfrastructureError: the folder cannot be written.
        """
        self.repository = repository
        self.folder = folder.absolute()
        self._keep_build = keep_build
        self._own: dict[str, OwnGit] = {}
        self._take_over()

    def __enter__(self) -> Worktrees:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def at(self, commit: Commit) -> Path:
        """The one work tree that moves from commit to commit, clean and standing at this one.

        Raises:
            InfrastructureError: objects of the commit are missing, as in a partial clone, or the
                disk is full.
        """
        return self._tree(self.folder / _SHARED).stand_at(commit, self._keep_build)

    def without(self, commit: Commit, reverted: Commit) -> Path | str:
        """The work tree of `at`, at `commit` with the changes of `reverted` taken back, or why
        there is none, in a few words. As `at` for what it raises."""
        own = self._tree(self.folder / _SHARED)
        tree = own.stand_at(commit, self._keep_build)
        return own.without(reverted) or tree

    def separate(self, commit: Commit) -> Path:
        """A work tree of this commit's own, clean. As `at` for what it raises."""
        return self._tree(self.folder / _SEPARATE / commit.sha).stand_at(commit, self._keep_build)

    def submodules(self, commit: Commit) -> tuple[str, ...]:
        """Paths of submodules, which are left empty."""
        listing = self.repository.git.answer("ls-tree", "-r", "-z", "--full-tree", commit.sha)
        entries = (entry.partition("\t") for entry in listing.split("\0"))
        return tuple(path for facts, _, path in entries if facts.startswith("160000 "))

    def close(self) -> None:
        """Remove the folder."""
        self._own.clear()
        remove_tree(self.folder)

    def _tree(self, folder: Path) -> OwnGit:
        if str(folder) not in self._own:
            self._own[str(folder)] = OwnGit(self.repository, folder)
        return self._own[str(folder)]

    def _take_over(self) -> None:
        mark = self.folder / _MARK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not mark.is_file() and any(self.folder.iterdir()):
                raise UsageError(
                    f"{self.folder} holds files that are not poolbisect's; give another folder for "
                    "its work trees."
                )
            mark.write_text("Work trees of a bisect: removed when it ends.\n", encoding="utf-8")
        except OSError as error:
            raise InfrastructureError(
                f"{self.folder} cannot be used for work trees ({error.strerror or error})."
            ) from error
        for name in (_SHARED, _SEPARATE):
            remove_tree(self.folder / name)
