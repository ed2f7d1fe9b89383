"""Where work trees lie: in the cache, outside of any repository, locked while they are in use."""

from __future__ import annotations

import hashlib
from pathlib import Path

from filelock import FileLock, Timeout

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.releases import default_cache_dir
from poolbisect.probes.command.removal import remove_tree


class TreeFolder:
    """A folder for the work trees of the bisect that keeps its own files in `scratch`.

    Opening one removes those of bisects that were killed. Not inside `scratch`, which may lie in
    the user's repository, where test runners and build tools would find the user's settings.
    """

    def __init__(self, scratch: Path, root: Path | None = None) -> None:
        """Raises UsageError if another process uses it, InfrastructureError if none can be made."""
        self._root = (root or default_cache_dir() / "worktrees").absolute()
        key = hashlib.sha256(str(scratch.absolute()).encode(errors="surrogateescape"))
        self.path = self._root / key.hexdigest()[:16]
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with FileLock(self._root / "all.lock"):
                self._lock = FileLock(self._lock_file(self.path))
                self._lock.acquire(timeout=0)
                self._remove_abandoned()
        except Timeout as error:
            raise UsageError(
                f"another bisect is using {self.path}, the work trees of {scratch}; wait for it or "
                "end it."
            ) from error
        except OSError as error:
            raise InfrastructureError(
                f"the cache folder {self._root} cannot be used ({error.strerror or error}); "
                "set POOLBISECT_CACHE to a folder you can write."
            ) from error

    def close(self) -> None:
        """Remove the folder and let go of it."""
        with FileLock(self._root / "all.lock"):
            try:
                remove_tree(self.path)
            finally:
                self._lock.release()
                self._lock_file(self.path).unlink(missing_ok=True)

    def _remove_abandoned(self) -> None:
        for folder in self._root.iterdir():
            if folder == self.path or not folder.is_dir() or folder.is_symlink():
                continue
            lock = FileLock(self._lock_file(folder))
            try:
                with lock.acquire(timeout=0):
                    remove_tree(folder)
            except (Timeout, InfrastructureError):
                continue
            self._lock_file(folder).unlink(missing_ok=True)

    def _lock_file(self, folder: Path) -> Path:
        return self._root / f"{folder.name}.lock"
