"""A tree of SGLang sources, wherever it lies: a wheel, a commit, a mapping in a test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable


class SourceTree(ABC):
    """Read access to the Python sources of one state of SGLang.

    Paths are relative to upstream's `python/` folder and use forward slashes, for example
    `sglang/srt/mem_cache/memory_pool.py`; a wheel holds the same paths.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What to call this tree in a message, for example `sglang 0.5.11`."""

    @abstractmethod
    def read(self, path: str) -> str | None:
        """The text of a file, or None when this tree has no such file."""

    @abstractmethod
    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        """The sorted paths of the `.py` files below `under` that contain `text`.

        Slower than `read`: meant for files that are not where they usually are.
        """
