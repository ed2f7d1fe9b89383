"""A bytecode cache of its own for each tree, so that no stale one is ever run.

Python takes a `.pyc` for fresh when size and modification time (to the second) of its source
agree, and one marked unchecked without any look at the source. Sources that move from commit to
commit within a second, or caches that were committed, would then run old code. With
`PYTHONPYCACHEPREFIX` Python neither reads nor writes caches beside the sources (PEP 304 as of
Python 3.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def bytecode_folder(folder: Path, shared: Mapping[Path, Path]) -> Path:
    """Make `folder` a value for `PYTHONPYCACHEPREFIX` of one tree.

    `shared` says for folders of modules that no tree changes (the standard library, an
    environment's packages) where their caches are: they need not be compiled again for each tree.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for library, target in shared.items():
        if any(other in library.parents for other in shared):
            continue
        # Python appends a source's whole path to the prefix.
        link = folder / library.relative_to(library.anchor)
        target.mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(target, target_is_directory=True)
    return folder
