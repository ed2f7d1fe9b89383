"""Tests for a change of level, a drift and two-valued scores in a short series.

Every test compares a fixed grouping of the nights (or a line) with a constant level. Noise is
taken as normal and independent between nights. With a known spread the explained sum of squares
over its variance is chi-squared; with an estimated one the ratio of the two is F. Both are exact,
and Bonferroni over all groupings tried keeps the false alarm rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from poolbisect.evidence.noise import Noise, Scores


@dataclass(frozen=True, slots=True)
class Fit:
    """A model of the series: adjusted p against a constant level, and cost for choosing."""

    p_value: float
    cost: float
    left: float
    parameters: int
    fitted: Scores


def squares(scores: Scores) -> float:
    """Sum of squared departures from the mean."""
    return float(np.sum((scores - scores.mean()) ** 2)) if scores.size else 0.0


def grouped(scores: Scores, labels: NDArray[np.intp]) -> Scores:
    """Each night's group mean."""
    sums = np.bincount(labels, scores)
    return np.asarray((sums / np.maximum(np.bincount(labels), 1))[labels])


def fit_drift(scores: Scores, noise: Noise) -> tuple[Fit, float]:
    """Straight line by least squares, and its slope per night."""
    nights = scores.size
    time = np.arange(nights) - (nights - 1) / 2
    slope = float(time @ scores / (time @ time))
    fitted = scores.mean() + slope * time
    left = float(np.sum((scores - fitted) ** 2))
    p = noise.p_value(squares(scores) - left, left, 1, nights)
    return Fit(p, noise.cost(left, 2, nights), left, 2, fitted), slope


def fit_groups(scores: Scores, labels: NDArray[np.intp], noise: Noise) -> Fit:
    """One level per label, labels given from outside (0, 1, ...)."""
    fitted, levels = grouped(scores, labels), int(labels.max()) + 1
    left = float(np.sum((scores - fitted) ** 2))
    p = noise.p_value(squares(scores) - left, left, levels - 1, scores.size)
    return Fit(p, noise.cost(left, levels, scores.size), left, levels, fitted)


def fit_two_levels(scores: Scores, noise: Noise) -> tuple[Fit, NDArray[np.intp]]:
    """Two levels with each night free to be on either, and which night is on the upper one.

    The best assignment splits the sorted scores, but it is the best of all 2^(n-1) - 1, and p is
    adjusted for that many. Naming the level of each night costs at most one bit a night.
    """
    nights = scores.size
    order = np.sort(scores)
    counts = np.arange(1, nights)
    sums = np.cumsum(order)[:-1]
    explained = (sums - counts * scores.mean()) ** 2 * nights / (counts * (nights - counts))
    cut = int(np.argmax(explained))
    labels = (scores > order[cut]).astype(np.intp)
    fitted = grouped(scores, labels)
    left = float(np.sum((scores - fitted) ** 2))
    p = noise.p_value(float(explained[cut]), left, 1, nights)
    adjusted = min(1.0, np.exp(min(0.0, log(max(p, 1e-300)) + (nights - 1) * log(2))))
    moves = int(np.count_nonzero(np.diff(labels)))
    # Twice a parameter for each move, so that one odd night does not turn a step into flakiness.
    naming = min(2 * moves * log(nights), 2 * log(2) * nights)
    cost = noise.cost(left, 2, nights) + naming
    return Fit(float(adjusted), cost, left, 2 + moves, fitted), labels


def split(scores: Scores, noise: Noise, level: float) -> tuple[int, ...]:
    """Indices at which a new level begins, by binary segmentation at false alarm rate `level`.

    Each stretch is tested for one change (n - 1 places) and for a passing one (all stretches
    inside); the better is taken and the parts are searched again (Olshen et al. 2004, circular
    binary segmentation). On a stretch with one level the chance of any split is at most `level`.
    """
    places = [place for place in best_splits(scores, noise) if place.p_value < level]
    if not places:
        return ()
    # By cost and not by p, which is zero for either kind of a large change.
    chosen = min(places, key=lambda place: place.cost).cuts
    ends = (0, *chosen, scores.size)
    inner = [
        start + cut
        for start, stop in pairwise(ends)
        for cut in split(scores[start:stop], noise, level)
    ]
    return tuple(sorted({*chosen, *inner}))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a level changes (one index) or changes and returns (two), with its adjusted p."""

    cuts: tuple[int, ...]
    p_value: float
    cost: float


def best_splits(scores: Scores, noise: Noise) -> list[Place]:
    """The best single and the best passing change; fewer where the series is too short."""
    nights = scores.size
    total = squares(scores)
    sums = np.concatenate(([0.0], np.cumsum(scores - scores.mean())))
    start, stop = np.triu_indices(nights + 1, 1)
    # A stretch from the first night or to the last one is a single change; keep each once.
    single = (start > 0) & (stop == nights)
    passing = (start > 0) & (stop < nights)
    places = []
    for kind in (single, passing):
        if not kind.any():
            continue
        first, last = start[kind], stop[kind]
        size = last - first
        inside = (sums[last] - sums[first]) ** 2
        explained = inside * nights / (size * (nights - size))
        best = int(np.argmax(explained))
        left = total - float(explained[best])
        # Half of the false alarms for either kind.
        p = 2 * first.size * noise.p_value(float(explained[best]), left, 1, nights)
        cuts = (int(first[best]), int(last[best]))
        cuts_kept = cuts[:1] if cuts[1] == nights else cuts
        cost = noise.cost(left, 1 + 2 * len(cuts_kept), nights)
        places.append(Place(cuts_kept, min(1.0, p), cost))
    return places


def fit_steps(scores: Scores, cuts: tuple[int, ...], p_value: float, noise: Noise) -> Fit:
    """Constant levels between `cuts`; p is that of the first split."""
    labels = np.zeros(scores.size, dtype=np.intp)
    for cut in cuts:
        labels[cut:] += 1
    fitted = grouped(scores, labels)
    left = float(np.sum((scores - fitted) ** 2))
    parameters = 1 + 2 * len(cuts)
    return Fit(p_value, noise.cost(left, parameters, scores.size), left, parameters, fitted)


def change_range(
    scores: Scores, cut: int, start: int, stop: int, noise: Noise, confidence: float = 0.95
) -> tuple[int, int]:
    """Credible range (first, last index) of where the level between `start` and `stop` changed.

    Flat prior over the places; likelihood of the two-level fit at each. Contains `cut`.
    """
    places = np.arange(start + 1, stop)
    left = np.array([squares(scores[start:k]) + squares(scores[k:stop]) for k in places])
    nights = stop - start
    variance = noise.variance(float(left.min()), nights, 2)
    weight = np.exp(-(left - left.min()) / (2 * variance))
    weight /= weight.sum()
    order = np.argsort(-weight, kind="stable")
    enough = int(np.searchsorted(np.cumsum(weight[order]), confidence)) + 1
    kept = places[order[:enough]]
    return min(cut, int(kept.min())), max(cut, int(kept.max()))
