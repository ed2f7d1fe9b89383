"""What kind of change, if any, a series of nightly scores shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy.stats import t

from poolbisect.evidence.baseline import BaselineScore
from poolbisect.evidence.changes import (
    Fit,
    best_splits,
    change_range,
    fit_drift,
    fit_groups,
    fit_steps,
    fit_two_levels,
    split,
    squares,
)
from poolbisect.evidence.environment import (
    SeriesPoint,
    VersionChange,
    code_changed,
    runner_changed,
    version_changes,
)
from poolbisect.evidence.findings import SAME_NIGHTS, SeriesFinding, SeriesKind, Transition
from poolbisect.evidence.noise import (
    Noise,
    Scores,
    chance_of_ties,
    is_noisier,
    recorded_noise,
    same_at_end,
    score_grid,
)

FALSE_ALARM = 0.001


def classify_series(
    points: Sequence[SeriesPoint],
    *,
    baseline: BaselineScore | None = None,
    questions: int | None = None,
    false_alarm: float = FALSE_ALARM,
) -> SeriesFinding:
    """Name what a series of nights does, oldest first.

    The chance that a steady series, normal and independent between nights, is called anything
    else is at most `false_alarm` for one call. The tests (level, drift, runner, two-valued,
    baseline) share it evenly, each exact or Bonferroni-adjusted within itself; among those that
    fire, the model of least BIC names the kind. `baseline` gives the recorded spread, without
    which it is estimated from the series, and a level to depart from. `questions` gives the
    resolution of a score, inferred from the scores otherwise. Raises ValueError without a point.
    """
    if not points:
        raise ValueError("a series needs at least one night")
    if not 0 < false_alarm < 1:
        raise ValueError(f"the false alarm rate must lie between 0 and 1, got {false_alarm}")
    scores = np.array([point.score for point in points])
    grid = 1 / questions if questions else score_grid(scores)
    noisier = baseline is not None and is_noisier(scores, baseline.sd)
    noise = Noise(grid=grid) if baseline is None or noisier else recorded_noise(baseline, grid)
    return _Classifier(points, scores, noise, noisier, baseline, false_alarm).finding()


class _Classifier:
    """The tests of one series, one after the other."""

    def __init__(
        self,
        points: Sequence[SeriesPoint],
        scores: Scores,
        noise: Noise,
        noisier: bool,
        baseline: BaselineScore | None,
        false_alarm: float,
    ) -> None:
        self.points, self.scores, self.noise = points, scores, noise
        self.noisier, self.baseline = noisier, baseline
        self.same_nights = same_at_end(scores)
        self.runners = sorted({point.runner or "" for point in points})
        # Level, drift, two-valued, ties; runner and baseline only where there are any.
        self.tests = 4 + (len(self.runners) > 1) + (baseline is not None)
        self.level = false_alarm / self.tests

    def finding(self) -> SeriesFinding:
        if self.scores.size > 1:
            fits = self._fits()
            firing = {kind: fit for kind, fit in fits.items() if fit.p_value < self.level}
            if "levels" in firing and self._keeps_returning():
                firing.pop("steps", None)
            if firing:
                kind = min(firing, key=lambda k: firing[k].cost)
                return self._named(kind, firing[kind])
        return self._off_baseline() or self._frozen() or self._steady()

    def _fits(self) -> dict[str, Fit]:
        scores, noise = self.scores, self.noise
        first = min((place.p_value for place in best_splits(scores, noise)), default=1.0)
        self.cuts = split(scores, noise, self.level)
        fits = {"steps": fit_steps(scores, self.cuts, first, noise)}
        if scores.size > 2:
            fits["drift"], self.slope = fit_drift(scores, noise)
            fit, self.upper = fit_two_levels(scores, noise)
            # With fewer than three changes of level it is a step, or a step and its return.
            if np.count_nonzero(np.diff(self.upper)) > 2:
                fits["levels"] = fit
        if len(self.runners) > 1:
            labels = np.array([self.runners.index(p.runner or "") for p in self.points])
            # Runners that take turns only once cannot be told from a step of the code.
            if np.count_nonzero(np.diff(labels)) >= len(self.runners):
                fits["runner"] = fit_groups(scores, labels, noise)
        return fits

    def _keeps_returning(self) -> bool:
        """Whether the steps go down and up at least twice, as no sequence of fixes would."""
        ends = (0, *self.cuts, self.scores.size)
        levels = [self.scores[start:stop].mean() for start, stop in pairwise(ends)]
        moves = np.sign(np.diff(levels))
        return moves.size >= 4 and bool(np.all(moves[1:] != moves[:-1]))

    def _named(self, name: str, fit: Fit) -> SeriesFinding:
        if name == "drift":
            summary = f"drift of {self.slope:+.4f} a night over {self.scores.size} nights"
            return replace(self._base(SeriesKind.DRIFT, summary, fit), slope=self.slope)
        if name == "runner":
            means = {
                runner: float(np.mean([p.score for p in self.points if (p.runner or "") == runner]))
                for runner in self.runners
            }
            listed = ", ".join(
                f"{runner or 'unnamed'} {mean:.4g}" for runner, mean in means.items()
            )
            summary = f"the score follows the runner ({listed}), not the code"
            levels = (min(means.values()), max(means.values()))
            base = self._base(SeriesKind.TWO_VALUED, summary, fit)
            return replace(base, by_runner=means, levels=levels)
        if name == "levels":
            low = float(self.scores[self.upper == 0].mean())
            high = float(self.scores[self.upper == 1].mean())
            summary = f"the score jumps between {low:.4g} and {high:.4g}: flaky, not a step"
            return replace(self._base(SeriesKind.TWO_VALUED, summary, fit), levels=(low, high))
        return self._step(fit)

    def _step(self, fit: Fit) -> SeriesFinding:
        ends = (0, *self.cuts, self.scores.size)
        transitions = tuple(self._transition(*ends[i - 1 : i + 2]) for i in range(1, len(ends) - 1))
        changes = tuple(change for move in transitions for change in move.changes)
        told = "; ".join(
            f"{move.before:.4g} to {move.after:.4g} at night {move.index + 1}"
            for move in transitions
        )
        if all(move.is_environment for move in transitions):
            cause = ", ".join(map(str, changes)) or "nothing that was recorded"
            summary = f"level changed ({told}) while the code did not; changed: {cause}"
            base = self._base(SeriesKind.ENVIRONMENT, summary, fit)
        else:
            base = self._base(SeriesKind.STEP, f"level changed: {told}", fit)
        return replace(base, transitions=transitions, changes=changes)

    def _transition(self, start: int, cut: int, stop: int) -> Transition:
        first, last = change_range(self.scores, cut, start, stop, self.noise)
        before, after = self.points[cut - 1], self.points[cut]
        moved = runner_changed(before, after)
        return Transition(
            index=cut,
            first=first,
            last=last,
            before=float(self.scores[start:cut].mean()),
            after=float(self.scores[cut:stop].mean()),
            code_changed=code_changed(self.points[first - 1 : last + 1]),
            changes=version_changes(before, after),
            runner=(str(before.runner), str(after.runner)) if moved else None,
        )

    def _off_baseline(self) -> SeriesFinding | None:
        """A steady series on another level than the baseline: the change lies before it."""
        if self.baseline is None or self.noisier:
            return None
        nights, runs = self.scores.size, self.baseline.runs
        # With no count of runs the baseline is taken to be no better known than one night.
        share = 1 / nights + 1 / runs if runs else 1.0
        error = self.noise.sd * sqrt(share)
        mean = float(self.scores.mean())
        p = float(2 * t.sf(abs(mean - self.baseline.mean) / error, self.noise.freedom))
        if p >= self.level:
            return None
        unchanged = code_changed(self.points) is False
        changes = self._all_changes() if unchanged else ()
        transition = Transition(
            0, 0, 0, self.baseline.mean, mean, code_changed=False if changes else None
        )
        summary = f"steady at {mean:.4g}, off the baseline {self.baseline.mean:.4g}"
        if changes:
            summary += f"; the code did not change, but {', '.join(map(str, changes))}"
        kind = SeriesKind.ENVIRONMENT if changes else SeriesKind.STEP
        base = self._base(kind, summary, p)
        return replace(base, transitions=(transition,), changes=changes)

    def _frozen(self) -> SeriesFinding | None:
        """Noisy nights turn into identical ones on the night the dependencies change."""
        start = self.scores.size - self.same_nights
        if self.same_nights < SAME_NIGHTS or start < SAME_NIGHTS:
            return None
        changes = version_changes(self.points[start - 1], self.points[start])
        if not changes or code_changed(self.points[start - 1 :]) is not False:
            return None
        nights = self.scores.size - 1
        changed = sum(bool(version_changes(a, b)) for a, b in pairwise(self.points))
        noise = self.noise
        if not noise.freedom:
            noise = replace(noise, sd=float(np.std(self.scores[:start], ddof=1)))
        # Under chance alone the ties and the night of the dependency change are independent.
        p = chance_of_ties(self.same_nights, noise) * changed / nights
        if p >= self.level:
            return None
        listed = ", ".join(map(str, changes))
        summary = (
            f"the same score on the last {self.same_nights} nights, deterministic since "
            f"{listed}; the code did not change"
        )
        return replace(self._base(SeriesKind.ENVIRONMENT, summary, p), changes=changes)

    def _steady(self) -> SeriesFinding:
        mean = float(self.scores.mean())
        summary = f"steady at {mean:.4g} over {self.scores.size} nights"
        changes: tuple[VersionChange, ...] = ()
        if self.same_nights >= SAME_NIGHTS:
            summary += f", the last {self.same_nights} exactly alike"
            if code_changed(self.points) is False and (changes := self._all_changes()):
                summary += f" although {', '.join(map(str, changes))}"
        return replace(self._base(SeriesKind.STEADY, summary, 1.0), changes=changes)

    def _all_changes(self) -> tuple[VersionChange, ...]:
        pairs = pairwise(self.points)
        return tuple(change for a, b in pairs for change in version_changes(a, b))

    def _base(self, kind: SeriesKind, summary: str, found: Fit | float) -> SeriesFinding:
        """A finding with what all kinds share; without a fit the noise is about one level."""
        if isinstance(found, Fit):
            p, left, parameters = found.p_value, found.left, found.parameters
        else:
            p, left, parameters = found, squares(self.scores), 1
        return SeriesFinding(
            kind=kind,
            summary=summary,
            p_value=min(1.0, p * self.tests),
            sd=sqrt(max(left, 0.0) / max(1, self.scores.size - parameters)),
            same_nights=self.same_nights,
            noisier=self.noisier,
        )
