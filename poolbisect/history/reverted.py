"""A later state of the sources without what one commit did, made beside the user's repository."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from poolbisect.errors import InfrastructureError
from poolbisect.history.commits import PACKAGE_ROOT, CommitTree
from poolbisect.history.git_process import neutral_environment, reason_of
from poolbisect.history.repository import Commit, Repository
from poolbisect.history.source_tree import SourceTree

_CONFLICT = 1  # what `git merge-tree` ends with when it could not merge
_MERGES_ASIDE = (2, 38)
_NO_FILE = ("000000", "160000")  # modes: nothing there, a submodule


class RevertedTree(SourceTree):
    """The sources at `commit` with the changes of `reverted` taken back.

    A three-way merge of the commit with the reverted one's parent, based on the reverted one: what
    `git revert` does. Its new objects go to a folder of ours, which is gone when it is made; the
    repository is only read.
    """

    def __init__(
        self,
        repository: Repository,
        commit: Commit,
        reverted: Commit,
        changed: dict[str, str | None],
    ) -> None:
        """Use `revert`, which makes one."""
        self._base = CommitTree(repository, commit)
        self._reverted = reverted
        self._changed = changed

    @property
    def name(self) -> str:
        return f"{self._base.name} without {self._reverted.short}"

    def read(self, path: str) -> str | None:
        if path in self._changed:
            return self._changed[path]
        return self._base.read(path)

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        found = {path for path in self._base.find(text, under) if path not in self._changed}
        found |= {
            path
            for path, content in self._changed.items()
            if path.startswith(f"{under}/") and path.endswith(".py") and text in (content or "")
        }
        return sorted(found)


def revert(repository: Repository, commit: Commit, reverted: Commit) -> RevertedTree | str:
    """The tree, or why there is none, in a few words. git 2.38 or newer makes the merge.

    Raises:
        InfrastructureError: git cannot read the commits, or cannot write beside them.
    """
    if not reverted.parents:
        return "it has no parent to go back to"
    with tempfile.TemporaryDirectory(prefix="poolbisect-") as scratch:
        git = _Aside(repository, Path(scratch))
        # A history of three commits, of which the reverted one's tree is the common base.
        base = git.commit(f"{reverted.sha}^{{tree}}")
        ours = git.commit(f"{commit.sha}^{{tree}}", base)
        theirs = git.commit(f"{reverted.parents[0]}^{{tree}}", base)
        merged = git.run("merge-tree", "--write-tree", "--no-messages", ours, theirs)
        if merged.returncode == _CONFLICT:
            return f"it does not revert cleanly at {commit.short}"
        if merged.returncode:
            if git.version() < _MERGES_ASIDE:
                return "this git cannot merge without a work tree; use git 2.38 or newer"
            raise git.broken(merged)
        tree = merged.stdout.decode().split()[0]
        listing = git.answer(
            *("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", commit.sha, tree),
            *("--", PACKAGE_ROOT),
        )
        parts = listing.decode(errors="surrogateescape").split("\0")
        changed: dict[str, str | None] = {}
        # ":<mode> <mode> <id> <id> <status>" and a path, in turn.
        for entry, path in zip(parts[::2], parts[1::2], strict=False):
            _, mode, _, blob, _ = entry.split()
            text = None  # a file that the commit added is gone from the tree
            if mode not in _NO_FILE:
                text = git.answer("cat-file", "blob", blob).decode(errors="replace")
            changed[path.removeprefix(f"{PACKAGE_ROOT}/")] = text
    if not changed:
        return f"nothing of it is left in the package at {commit.short}"
    return RevertedTree(repository, commit, reverted, changed)


class _Aside:
    """git that reads the repository's objects and writes new ones elsewhere."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._git = repository.git
        somebody = {
            f"GIT_{who}_{what}": "poolbisect"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        self._environment = neutral_environment() | {
            **somebody,
            "GIT_OBJECT_DIRECTORY": str(folder),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.objects),
        }

    def commit(self, tree: str, *parents: str) -> str:
        """A commit of a tree, in our folder; its id."""
        above = [option for parent in parents for option in ("-p", parent)]
        return self.answer("commit-tree", tree, *above, "-m", "state").decode().strip()

    def version(self) -> tuple[int, ...]:
        """Major and minor; of "git version 2.39.5 (vendor)" (2, 39)."""
        found = re.search(rb"(\d+)\.(\d+)", self.answer("version"))
        return (int(found[1]), int(found[2])) if found else ()

    def answer(self, *arguments: str) -> bytes:
        """The output of a command that ends with status 0, else InfrastructureError."""
        done = self.run(*arguments)
        if done.returncode:
            raise self.broken(done)
        return done.stdout

    def broken(self, done: subprocess.CompletedProcess[bytes]) -> InfrastructureError:
        return self._git.broken(reason_of(done))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        settings = ("-c", "core.fsmonitor=", "-c", "merge.renames=true")
        return subprocess.run(
            ["git", "--no-pager", *settings, f"--git-dir={self._git.git_dir}", *arguments],
            capture_output=True,
            env=self._environment,
            cwd=self._git.git_dir,
            check=False,
        )


def _quoted(path: Path) -> str:
    # Unquoted, a path with a colon would be two.
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
