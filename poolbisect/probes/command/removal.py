"""Remove folders of ours, whatever a command has left in them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from poolbisect.errors import InfrastructureError


def remove_tree(folder: Path) -> None:
    """Remove a folder (or a file, or a link but not what it leads to), read-only parts included.

    Raises:
        InfrastructureError: something in it cannot be removed.
    """
    try:
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
        elif folder.exists():
            _make_writable(folder)
            shutil.rmtree(folder, onerror=_again)
    except OSError as error:
        raise InfrastructureError(
            f"{error.filename or folder} cannot be removed ({error.strerror or error}); "
            "remove it and try again."
        ) from error


def remove_bytecode(folder: Path) -> None:
    """Remove Python's caches: one is taken for fresh if size and second of its source agree."""
    for parent, folders, _ in os.walk(folder):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
            remove_tree(Path(parent, "__pycache__"))


def _make_writable(folder: Path) -> None:
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)


def _again(function: Callable[..., Any], path: str, problem: Any) -> None:
    """Once more with the folder and its parent writable: caches are often made read-only."""
    error = problem[1]
    if not isinstance(error, PermissionError):
        raise error
    for each in (Path(path).parent, Path(path)):
        if each.is_dir() and not each.is_symlink():
            _make_writable(each)
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path)
    else:
        os.unlink(path)
