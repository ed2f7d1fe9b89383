"""The lines of commits that a merge brings in, each as a range to search."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.culprit.request import first_with
from poolbisect.history.ranges import commit_range
from poolbisect.history.repository import Commit, Repository


@dataclass(frozen=True, slots=True)
class Branch:
    """From `older` to `tip` along first parents; `older` is where the branch left the main line,
    or where it last took it in."""

    older: Commit
    tip: Commit


def branches(repository: Repository, merge: Commit) -> list[Branch]:
    """Those of every parent but the first. None of a parent that brings in no line of its own."""
    main = repository.commit(merge.parents[0])
    found = []
    for parent in merge.parents[1:]:
        tip = repository.commit(parent)
        base = repository.merge_base(main, tip)
        if base is None or base.sha == tip.sha:
            continue
        line = commit_range(repository, base.sha, tip.sha).commits
        if line[1].parents[:1] != (base.sha,):
            # The branch took the main line in later; what lies before that is of another time.
            line = line[1:]
            start = first_with(repository, line, base)
            line = line[start:]
        if len(line) > 1:
            found.append(Branch(line[0], tip))
    return found
