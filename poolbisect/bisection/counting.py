"""From observations to effective counts at each measured position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from poolbisect.bisection.facts import Facts
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Observation
from poolbisect.bisection.shapes import Tally
from poolbisect.errors import UsageError

UNKNOWN = -1
Answers = NDArray[np.int8]


def unpaired(facts: Facts, noise: Noise) -> Tally:
    """One stratum: right and asked at each position, each run weighted by its design effect."""
    where = facts.positions()
    right, asked = np.zeros((1, len(where))), np.zeros((1, len(where)))
    index = {p: i for i, p in enumerate(where)}
    for position, seen in facts.measured:
        weight = noise.run_weight(seen.asked)
        right[0, index[position]] += seen.correct * weight
        asked[0, index[position]] += seen.asked * weight
    shrink = np.array([noise.commit_weight(n) for n in asked[0]])
    return Tally(np.array(where), right * shrink, asked * shrink, np.ones(1))


def answers(observations: Sequence[Observation]) -> list[Answers]:
    """Answers by question number: the first given to each question, then the second, ..."""
    layers: list[Answers] = []
    for seen in observations:
        if seen.outcomes is None:
            raise UsageError(
                "a paired search needs each question's outcome; give outcomes or search unpaired"
            )
        given = np.frombuffer(seen.outcomes.encode(), dtype=np.uint8).astype(np.int8) - ord("0")
        given[given < 0] = UNKNOWN
        todo = np.full(seen.offset + len(given), UNKNOWN, dtype=np.int8)
        todo[seen.offset :] = given
        depth = 0
        while (todo != UNKNOWN).any():
            if depth == len(layers):
                layers.append(np.zeros(0, dtype=np.int8))
            layer = _stretch(layers[depth], len(todo))
            free = (layer[: len(todo)] == UNKNOWN) & (todo != UNKNOWN)
            layer[: len(todo)][free] = todo[free]
            todo = np.where(free, UNKNOWN, todo).astype(np.int8)
            layers[depth] = layer
            depth += 1
    return layers


def _stretch(layer: Answers, length: int) -> Answers:
    if len(layer) >= length:
        return layer
    return np.concatenate([layer, np.full(length - len(layer), UNKNOWN, dtype=np.int8)])


class Strata:
    """Questions sorted by the ends' first answers: (old right, new right), four classes.

    Within a class, answers of further runs are exchangeable whatever made the ends differ, so
    each class has its own pair of rates in the change-point model; the ends' second answers
    (an A/A run at each end) teach those rates without having chosen the class.
    """

    def __init__(self, facts: Facts, last: int) -> None:
        self._layers = {p: answers(facts.at(p)) for p in facts.positions()}
        old, new = self._first(0), self._first(last)
        self.size = min(len(old), len(new))
        old, new = old[: self.size], new[: self.size]
        known = (old != UNKNOWN) & (new != UNKNOWN)
        self._class = np.where(known, 2 * old + new, UNKNOWN)
        self.table = np.bincount(self._class[known], minlength=4).astype(float)
        """Questions that (both ends got wrong, only the new, only the old, both got right)."""
        self.ends = (0, last)

    def _first(self, position: int) -> Answers:
        layers = self._layers.get(position)
        return layers[0] if layers else np.zeros(0, dtype=np.int8)

    def asked(self, position: int) -> int:
        """Questions answered at least once, as a prefix of the common order."""
        layers = self._layers.get(position)
        return len(layers[0]) if layers else 0

    def repeated(self, position: int) -> int:
        """The same for a second answer."""
        layers = self._layers.get(position, [])
        return len(layers[1]) if len(layers) > 1 else 0

    def tally(self, noise: Noise) -> Tally:
        """(4, k) counts: second answers at the ends, first answers elsewhere."""
        where = sorted(self._layers)
        right, asked = np.zeros((4, len(where))), np.zeros((4, len(where)))
        for column, position in enumerate(where):
            layers = self._layers[position]
            depth = 1 if position in self.ends else 0
            if len(layers) <= depth:
                continue
            given = layers[depth][: self.size]
            cls = self._class[: len(given)]
            use = (given != UNKNOWN) & (cls != UNKNOWN)
            asked[:, column] = np.bincount(cls[use], minlength=4)
            right[:, column] = np.bincount(cls[use & (given == 1)], minlength=4)
            n = asked[:, column].sum()
            weight = noise.run_weight(n)
            weight *= noise.commit_weight(n * weight)
            asked[:, column] *= weight
            right[:, column] *= weight
        share = self.table / max(self.table.sum(), 1.0)
        return Tally(np.array(where), right, asked, share)

    def log_odds_of_change(self) -> float:
        """ln evidence of the ends' own table for a change: discordant pairs are a fair coin if
        nothing changed (as in McNemar's test), else a coin with a Jeffreys prior."""
        lost, gained = self.table[2], self.table[1]
        biased = betaln(0.5 + lost, 0.5 + gained) - betaln(0.5, 0.5)
        return float(biased + (lost + gained) * np.log(2))
