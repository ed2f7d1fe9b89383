"""Where in a range a commit is likely to run at all, given which ones did and did not."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

BLOCK_LENGTH = 8.0
"""Scale, in commits, over which a broken build stays broken."""
BROKEN_SHARE = 0.2
"""Share of commits that do not run, before anything is known."""


def testable_probability(
    commits: int, runnable: Collection[int], broken: Collection[int]
) -> NDArray[np.float64]:
    """P(the commit at each position runs), shape (commits,).

    Two-state Markov chain along the history, conditioned on the nearest known commit on each side.
    All ones while nothing is known to be broken, so that search is then plain bisection.
    """
    if not broken:
        return np.ones(commits)
    known = np.array(sorted({*runnable, *broken}))
    is_broken = np.isin(known, np.array(sorted(broken)))
    at = np.arange(commits)
    after = np.searchsorted(known, at, side="left")
    before = np.searchsorted(known, at, side="right") - 1
    has_left, has_right = before >= 0, after < len(known)
    left, right = np.clip(before, 0, None), np.clip(after, None, len(known) - 1)
    keep_left = np.where(has_left, np.exp(-(at - known[left]) / BLOCK_LENGTH), 0.0)
    keep_right = np.where(has_right, np.exp(-(known[right] - at) / BLOCK_LENGTH), 0.0)
    share = np.array([1 - BROKEN_SHARE, BROKEN_SHARE])
    state = np.ones((2, commits))
    for s in (0, 1):
        # The chain is reversible, so the step from the right has the same form as from the left.
        same_left, same_right = is_broken[left] == bool(s), is_broken[right] == bool(s)
        from_left = share[s] + (same_left - share[s]) * keep_left
        towards = np.where(is_broken[right], share[1], share[0])
        to_right = towards + (same_right - towards) * keep_right
        state[s] = from_left * np.where(has_right, to_right, 1.0)
    return np.asarray(state[0] / state.sum(axis=0))


LEAST_TESTABLE = 0.1
"""Below this chance everywhere inside, a gap counts as one broken block."""
MOST_BROKEN = 8
"""Broken commits found inside one gap without a runnable one, before it counts as a block."""


def give_up(
    low: int, high: int, broken: Collection[int], open_probability: NDArray[np.float64]
) -> bool:
    """Whether the gap between measured `low` and `high` is a block that will not run.

    `open_probability`: chances of the untried commits inside.
    """
    inside = sum(low < p < high for p in broken)
    if inside == 0:
        return False
    return inside >= MOST_BROKEN or bool((open_probability < LEAST_TESTABLE).all())
