"""Judge every position of a range, probing only where the sources that matter differ.

Which sources matter is learnt from the probes themselves: the files they read, and which files
hold the texts they look for. Positions at which all of that is the same have the same answer, so
one of them is probed for all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from poolbisect.history.commits import CommitTree
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.repository import Repository
from poolbisect.history.source_tree import SourceTree
from poolbisect.history.sources_over_time import SourcesOverTime
from poolbisect.probes.facets import ContractState
from poolbisect.timeline.probers import Probers

_FOLDER = "sglang/srt"

Held = dict[str, tuple[str, ...]]
"""For each text, the sorted paths of the files that hold it."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The state at every position, then at every one outside the range.

    `touched`: positions whose sources that matter differ from those at the position before.
    """

    states: tuple[ContractState, ...]
    touched: frozenset[int]


def survey(history: HistoryRange, probers: Probers) -> Survey:
    """Judge every position of a range.

    Raises:
        InfrastructureError: the repository cannot be read, or no child process can be started.
    """
    if isinstance(history, CommitRange):
        return _CommitSurvey(history, probers).run()
    every = range(len(history))
    states = probers.probe(every, lambda position, _: history.tree(position))
    return Survey(tuple(states[position] for position in every), frozenset(every[1:]))


class _CommitSurvey:
    """Which commits to probe for a range of them; grows wiser with each round of probes."""

    def __init__(self, history: CommitRange, probers: Probers) -> None:
        self._commits = (*history.commits, *history.boundary)
        self._inside = len(history.commits)
        self._repository = history.repository
        self._probers = probers
        self._sources = SourcesOverTime(history.repository, self._commits)
        self._holders: Mapping[str, frozenset[str]] = {}
        self._texts: set[str] = set()
        self._paths: set[str] = set()
        self._found: dict[int, ContractState] = {}

    def run(self) -> Survey:
        repositories = [self._repository.again() for _ in range(self._probers.workers)]
        try:
            # The ends first, without knowing anything: they show which sources matter.
            self._round({0, self._inside - 1}, {}, repositories)
            while True:
                keys, held = self._keys()
                answered = {keys[position]: position for position in self._found}
                wanted: dict[int, int] = {}
                for position, key in enumerate(keys):
                    if key not in answered:
                        wanted.setdefault(key, position)
                if not wanted:
                    break
                self._round(set(wanted.values()), held, repositories)
        finally:
            for repository in repositories:
                repository.close()
        states = tuple(self._found[answered[key]] for key in keys)
        touched = {p for p in range(1, self._inside) if keys[p] != keys[p - 1]}
        return Survey(states, frozenset(touched))

    def _round(
        self,
        positions: set[int],
        held: Mapping[int, Held],
        repositories: list[Repository],
    ) -> None:
        trees: dict[int, _WatchedTree] = {}

        def tree_at(position: int, worker: int) -> SourceTree:
            commit = CommitTree(repositories[worker], self._commits[position])
            trees[position] = _WatchedTree(commit, held.get(position, Held()))
            return trees[position]

        self._found |= self._probers.probe(positions, tree_at)
        for tree in trees.values():
            self._paths |= tree.paths
        texts = set().union(*(tree.texts for tree in trees.values()))
        if not texts <= self._texts:
            self._texts |= texts
            self._holders = self._sources.holders(self._texts, _FOLDER)

    def _keys(self) -> tuple[list[int], dict[int, Held]]:
        """For each position a number that stands for all that matters there, and the paths that
        hold each text there.

        What matters are the blobs at the paths that probes read, and which paths hold a text.
        """
        numbers: dict[Hashable, int] = {}
        keys: list[int] = []
        held: dict[int, Held] = {}
        read: dict[str, str] = {}
        holding: dict[str, set[str]] = {text: set() for text in self._holders}
        number, paths = 0, Held()
        for position, changed in enumerate(self._sources.changes):
            matters = not position
            for path, blob in changed.items():
                if path in self._paths:
                    matters = True
                    _put(read, path, blob)
                if not path.startswith(f"{_FOLDER}/"):
                    continue
                for text, blobs in self._holders.items():
                    if (blob in blobs) != (path in holding[text]):
                        matters = True
                        holding[text] ^= {path}
            if matters:
                paths = Held({text: tuple(sorted(found)) for text, found in holding.items()})
                key = (frozenset(read.items()), tuple(paths.items()))
                number = numbers.setdefault(key, len(numbers))
            keys.append(number)
            held[position] = paths
        return keys, held


def _put(state: dict[str, str], path: str, blob: str | None) -> None:
    if blob is None:
        state.pop(path, None)
    else:
        state[path] = blob


class _WatchedTree(SourceTree):
    """A commit's sources that remember what was asked of them, and know where some texts are."""

    def __init__(self, tree: CommitTree, held: Held) -> None:
        self._tree = tree
        self._held = held
        self.paths: set[str] = set()
        self.texts: set[str] = set()

    @property
    def name(self) -> str:
        return self._tree.name

    def read(self, path: str) -> str | None:
        self.paths.add(path)
        return self._tree.read(path)

    def find(self, text: str, under: str = _FOLDER) -> Iterable[str]:
        self.texts.add(text)
        if under == _FOLDER and text in self._held:
            return self._held[text]
        return self._tree.find(text, under)
