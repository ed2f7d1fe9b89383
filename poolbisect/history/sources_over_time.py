"""Which sources change at which commit, and which of them hold a text: without a checkout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from poolbisect.history.commits import PACKAGE_ROOT
from poolbisect.history.repository import Commit, Repository

_PREFIX = f"{PACKAGE_ROOT}/"


class SourcesOverTime:
    """The Python files of a list of commits, each seen as what differs from the commit before it.

    Paths are those of a SourceTree. Neighbours in the list need not be parent and child.
    """

    def __init__(self, repository: Repository, commits: Sequence[Commit]) -> None:
        self._repository = repository
        self._commits = tuple(commits)

    @cached_property
    def changes(self) -> list[dict[str, str | None]]:
        """For each commit, path to blob id of what differs from the one before it; None: gone.

        The first entry is everything that the first commit holds.
        """
        found = [self._listing(self._commits[0])]
        pairs = [
            f"{before.tree} {after.tree}\n"
            for before, after in zip(self._commits, self._commits[1:], strict=False)
        ]
        if pairs:
            output = self._repository.git.answer(
                *("diff-tree", "--stdin", "-r", "--raw", "-z", "--no-renames", "--no-abbrev"),
                *("--", PACKAGE_ROOT),
                stdin="".join(pairs).encode(),
            )
            found += _parsed(output)
        return found

    def walk(self) -> Iterator[dict[str, str]]:
        """Path to blob id at each commit; the same dictionary each time, changed in place."""
        state: dict[str, str] = {}
        for changed in self.changes:
            for path, blob in changed.items():
                if blob is None:
                    state.pop(path, None)
                else:
                    state[path] = blob
            yield state

    def holders(
        self, texts: Iterable[str], under: str = "sglang/srt"
    ) -> Mapping[str, frozenset[str]]:
        """For each text, the ids of the blobs below a folder that hold it, at any commit."""
        sought = {text: text.encode() for text in texts}
        found: dict[str, set[str]] = {text: set() for text in sought}
        folder = under.rstrip("/") + "/"
        every = dict.fromkeys(
            blob
            for changed in self.changes
            for path, blob in changed.items()
            if blob is not None and path.startswith(folder)
        )
        for blob, content in self._repository.git.blobs(every):
            if content is None:
                raise self._repository.git.broken(
                    f"object {blob} is missing, as in a partial clone; fetch it in full"
                )
            for text, encoded in sought.items():
                if encoded in content:
                    found[text].add(blob)
        return {text: frozenset(blobs) for text, blobs in found.items()}

    def _listing(self, commit: Commit) -> dict[str, str | None]:
        output = self._repository.git.answer(
            "ls-tree", "-r", "-z", "--full-tree", commit.tree, "--", _PREFIX
        )
        found: dict[str, str | None] = {}
        for entry in output.split("\0"):
            description, _, path = entry.partition("\t")
            if _is_source(path) and description.split()[1] == "blob":
                found[path.removeprefix(_PREFIX)] = description.split()[2]
        return found


def _is_source(path: str) -> bool:
    return path.startswith(_PREFIX) and path.endswith(".py")


def _parsed(output: str) -> Iterator[dict[str, str | None]]:
    """One dictionary a pair, from a header line "<tree> <tree>" and NUL-ended raw entries."""
    changed: dict[str, str | None] | None = None
    parts = iter(output.split("\0"))
    for part in parts:
        *headers, entry = part.split("\n")
        for _ in headers:
            if changed is not None:
                yield changed
            changed = {}
        if entry:
            assert changed is not None
            path = next(parts)
            _, mode, _, blob, _ = entry.split()
            if _is_source(path):
                gone = mode == "000000"
                changed[path.removeprefix(_PREFIX)] = None if gone else blob
    if changed is not None:
        yield changed
