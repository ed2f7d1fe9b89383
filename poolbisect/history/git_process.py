"""Run git's plumbing on one repository, untouched by the user's environment and settings.

Only commands that read are ever given: plumbing, and `grep` with every option that matters spelt
out, which no alias, pager, hook, external diff or display setting changes.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from poolbisect.errors import InfrastructureError
from poolbisect.history.git_objects import GitObject, next_object, tree_modes

# Where git and its configuration are; all other GIT_ variables would lead to another repository,
# index or object store than the one asked for.
_KEPT = frozenset(
    {"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
)
_READ_ONLY = {
    "GIT_OPTIONAL_LOCKS": "0",  # no refreshed index is written
    "GIT_NO_REPLACE_OBJECTS": "1",  # a commit is what its id says, for every reader of it
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone is not filled; older gits lack this, so:
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}
# `git grep` looks at the index even when it searches a commit, and would ask this program then.
_SETTINGS = ("-c", "core.fsmonitor=")
_NO_MATCH = 1  # what `git grep` ends with when it found nothing
_ERROR = re.compile(rb"^(error|fatal): ", re.M)
_SUBMODULE = b"160000"  # its commit is another repository's


class GitFailed(Exception):  # noqa: N818 - it ended with `status`, which may be an answer
    """git ended with a status other than 0; `reason` is the first line it wrote to stderr."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def neutral_environment() -> dict[str, str]:
    """The process environment without what would redirect git or let it write."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }
    return kept | _READ_ONLY


class GitProcess:
    """git on the repository whose git directory is `git_dir`.

    Objects are read through one `cat-file --batch` process that stays open until `close`: a
    quarter of the time that looking a path up tree by tree takes. One thread at a time.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._reader: subprocess.Popen[bytes] | None = None
        self._ending: weakref.finalize[..., Any] | None = None

    def __enter__(self) -> GitProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """The output of a git command. GitFailed when it ends with another status than 0."""
        done = self._done(arguments, stdin)
        if done.returncode:
            raise GitFailed(done.returncode, reason_of(done))
        return done.stdout

    def answer(self, *arguments: str, stdin: bytes = b"") -> str:
        """`run` where a failure is the host's or the repository's: InfrastructureError."""
        try:
            return self.run(*arguments, stdin=stdin).decode(errors="replace")
        except GitFailed as error:
            raise self.broken(error.reason) from error

    def grep(self, *arguments: str) -> bytes:
        """The output of `git grep`, empty for no match. InfrastructureError for any file unread.

        Its status says neither: 1 and 0 are also those of a search that left out what the
        database lacks.
        """
        done = self._done(("grep", "--no-color", "--no-recurse-submodules", *arguments), b"")
        if done.returncode not in (0, _NO_MATCH) or _ERROR.search(done.stderr):
            raise self.broken(reason_of(done))
        return done.stdout

    def read(self, name: str) -> GitObject | None:
        """The object of a name such as `<commit>:<path>`, None if there is none (or several)."""
        if "\n" in name or "\0" in name:
            return None
        reader = self._open_reader()
        assert reader.stdin is not None
        assert reader.stdout is not None
        try:
            reader.stdin.write(name.encode(errors="surrogateescape") + b"\n")
            reader.stdin.flush()
            found = next_object(reader.stdout)
        except (OSError, EOFError) as error:
            self.close()
            raise self.broken(f"its object reader ended at {name}") from error
        return found

    def file(self, commit: str, path: str) -> GitObject | None:
        """What a commit has at a path from its root; None if nothing, or a submodule.

        Raises:
            InfrastructureError: it has something there that the database lacks.
        """
        found = self.read(f"{commit}:{path}")
        if found is None and self._has_entry(commit, path):
            raise self.broken(f"{path} of commit {commit[:10]} is missing or damaged")
        return found

    def _has_entry(self, commit: str, path: str) -> bool:
        """Whether the trees name an object at a path, as far as they can be read."""
        above, slash, name = path.rpartition("/")
        tree = self.read(f"{commit}:{above}")
        if tree is None:
            return not slash or self._has_entry(commit, above)
        mode = tree_modes(tree).get(os.fsencode(name)) if tree.type == "tree" else None
        return mode is not None and mode != _SUBMODULE

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """Many blobs at once, in the order of `ids`; None where the database lacks one.

        InfrastructureError when git ends before it has answered for all of them.
        """
        left = 0
        with tempfile.TemporaryFile() as wanted:
            for id in ids:
                wanted.write(f"{id}\n".encode())
                left += 1
            wanted.seek(0)
            reader = self._start(
                ("cat-file", "--batch", "--buffer"), stdin=wanted.fileno(), buffered=1 << 20
            )
            with reader:
                assert reader.stdout is not None
                while left:
                    header = reader.stdout.readline()
                    if not header:
                        raise self.broken("its object reader ended early")
                    left -= 1
                    words = header.decode().split()
                    if words[-1] == "missing":
                        yield words[0], None
                        continue
                    content = reader.stdout.read(int(words[2]))
                    reader.stdout.read(1)
                    yield words[0], content

    def close(self) -> None:
        if self._ending is not None:
            self._ending()
        self._reader = self._ending = None

    def _done(self, arguments: Sequence[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                self._command(arguments),
                input=stdin,
                capture_output=True,
                env=neutral_environment(),
                cwd=self.git_dir,
            )
        except OSError as error:
            raise no_git(error) from error

    def _open_reader(self) -> subprocess.Popen[bytes]:
        if self._reader is None:
            self._reader = self._start(("cat-file", "--batch"), stdin=subprocess.PIPE)
            # Also ends it when nobody closes this.
            self._ending = weakref.finalize(self, _end, self._reader)
        return self._reader

    def _start(
        self, arguments: Sequence[str], stdin: int, buffered: int = -1
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command(arguments),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=neutral_environment(),
                cwd=self.git_dir,
                bufsize=buffered,
            )
        except OSError as error:
            raise no_git(error) from error

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return ["git", "--no-pager", *_SETTINGS, f"--git-dir={self.git_dir}", *arguments]

    def broken(self, reason: str) -> InfrastructureError:
        """The error for a repository that git cannot read."""
        if any(self.git_dir.glob("objects/pack/*.promisor")):
            return InfrastructureError(
                f"The repository {self.git_dir} is a partial clone without the files that are "
                "needed, and nothing is fetched into it from here; use a clone made without "
                "--filter."
            )
        return InfrastructureError(
            f"git cannot read the repository {self.git_dir} ({reason}); check it with `git fsck`."
        )


def reason_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line that a git command wrote to stderr, or its status."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"status {done.returncode}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def no_git(error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"git could not be started ({error.strerror or error}); install git 2.25 or newer."
    )
