"""One work tree with a git directory of its own, whose objects are another repository's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from poolbisect.errors import InfrastructureError
from poolbisect.history.git_process import neutral_environment
from poolbisect.history.repository import Commit, Repository
from poolbisect.probes.command.removal import remove_bytecode, remove_tree

# Neither the system's nor the user's settings: filters such as LFS, line ends, hooks, fsmonitor.
_ISOLATED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
}
_SETTINGS = (
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", f"core.attributesFile={os.devnull}"),
    *("-c", f"core.excludesFile={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "core.logAllRefUpdates=false"),
    *("-c", "gc.auto=0"),
)

_LEFTOVERS = (
    *("info", "hooks", "index.lock", "HEAD.lock", "config.lock"),
    *("sequencer", "REVERT_HEAD", "CHERRY_PICK_HEAD", "MERGE_HEAD", "MERGE_MSG", "rebase-merge"),
)
_SHA256 = 64  # characters of an id


class _GitFailedError(Exception):
    """git ended with another status than 0; the message is its last line on stderr."""


class OwnGit:
    """`<folder>/tree`, a work tree, and `<folder>/git`, its git directory.

    The index that decides what is up to date is a third file: a command that runs git in the work
    tree has a copy of it, and what it does there is undone with the next commit.
    """

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.tree = folder / "tree"
        self._repository = repository
        self._folder = folder
        self._git_dir = folder / "git"
        self._index = folder / "index"
        self._config = b""
        self._is_made = False

    def stand_at(self, commit: Commit, keep_build: bool) -> Path:
        """The work tree, clean, at `commit`; only files that differ are written.

        Raises:
            InfrastructureError: it cannot be brought there, also when made anew.
        """
        try:
            if self._is_usable():
                try:
                    self._switch(commit, keep_build)
                    return self.tree
                except (_GitFailedError, InfrastructureError, OSError):
                    pass  # a command can leave anything behind; a new one has none of it
            self._make(commit)
            self._switch(commit, keep_build)
        except _GitFailedError as error:
            raise self._failed(commit, str(error)) from error
        except OSError as error:
            raise self._failed(commit, error.strerror or str(error)) from error
        return self.tree

    def without(self, commit: Commit) -> str | None:
        """Take a commit's changes back in the work tree; why that is impossible, or None.

        As `git revert` does, of a merge all that it brought in; nothing is committed.
        """
        if not commit.parents:
            return "it has no parent to go back to"
        mainline = ("--mainline", "1") if len(commit.parents) > 1 else ()
        try:
            self._git("revert", "--no-commit", *mainline, commit.sha)
        except _GitFailedError:
            return f"{commit.short} does not revert cleanly"
        changed = self._git("diff-index", "--name-only", "HEAD")
        return None if changed else f"nothing of {commit.short} is left to be taken back"

    def _is_usable(self) -> bool:
        return self._is_made and self.tree.is_dir() and not self.tree.is_symlink()

    def _make(self, commit: Commit) -> None:
        remove_tree(self._folder)
        self.tree.mkdir(parents=True)
        source = self._repository
        # git before 2.28 knows neither the option nor any format but SHA-1.
        options = ["--object-format=sha256"] if len(commit.sha) == _SHA256 else []
        self._git("init", "--quiet", "--template=", *options, str(self.tree))
        (self.tree / ".git").rename(self._git_dir)
        self._config = (self._git_dir / "config").read_bytes()
        info = self._git_dir / "objects" / "info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "alternates").write_bytes(_quoted(source.objects) + b"\n")
        shallow = source.objects.parent / "shallow"
        if source.is_shallow:
            shutil.copyfile(shallow, self._git_dir / "shallow")
        tags = source.git.answer("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
        (self._git_dir / "packed-refs").write_text(tags, encoding="utf-8")
        self._is_made = True

    def _switch(self, commit: Commit, keep_build: bool) -> None:
        self._restore_git_dir()
        # Untracked files go first: one may lie where the commit has a file or a folder.
        if self._index.exists():
            self._git("clean", "-ffd" if keep_build else "-ffdx", "--quiet")
            if keep_build:
                remove_bytecode(self.tree)
        self._git("read-tree", "--reset", "-u", commit.sha)
        (self._git_dir / "HEAD").write_text(commit.sha + "\n", encoding="ascii")
        shutil.copyfile(self._index, self._git_dir / "index")

    def _restore_git_dir(self) -> None:
        """Undo what a command's own git may have done to the settings, and a killed one's locks."""
        (self._git_dir / "config").write_bytes(self._config)
        for name in _LEFTOVERS:
            remove_tree(self._git_dir / name)
        self._index.with_name("index.lock").unlink(missing_ok=True)
        link = self.tree / ".git"
        if link.is_symlink() or not link.is_file():
            remove_tree(link)
        link.write_bytes(b"gitdir: " + os.fsencode(self._git_dir) + b"\n")

    def _git(self, *arguments: str) -> str:
        where = {
            "GIT_DIR": str(self._git_dir),
            "GIT_WORK_TREE": str(self.tree),
            "GIT_INDEX_FILE": str(self._index),
        }
        environment = neutral_environment() | _ISOLATED
        if arguments[0] != "init":
            environment |= where
        try:
            done = subprocess.run(
                ["git", "--no-pager", *_SETTINGS, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=environment,
                cwd=self.tree,
                check=False,
                start_new_session=True,  # Ctrl-C is ours to handle
            )
        except FileNotFoundError as error:
            raise InfrastructureError(
                "git could not be started; install git 2.25 or newer."
            ) from error
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise _GitFailedError(lines[-1] if lines else f"status {done.returncode}")
        return done.stdout.decode(errors="replace")

    def _failed(self, commit: Commit, reason: str) -> InfrastructureError:
        folder = self._repository.folder
        if any(self._repository.objects.glob("pack/*.promisor")):
            return InfrastructureError(
                f"{folder} is a partial clone that lacks files of {commit.short}, and nothing is "
                "fetched into it from here; use a clone made without --filter."
            )
        return InfrastructureError(
            f"{commit.short} of {folder} cannot be written to {self.tree} ({reason})."
        )


def _quoted(path: Path) -> bytes:
    """A line of `objects/info/alternates`; quoted as in C where git would misread it."""
    raw = os.fsencode(path.absolute())
    if b"\n" not in raw and not raw.startswith((b'"', b"#")):
        return raw
    for character, escape in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        raw = raw.replace(character, escape)
    return b'"' + raw + b'"'
