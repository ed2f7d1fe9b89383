"""Findings of a night, sorted into new, persistent and fixed; and what colour the night has. Pure.

A series whose past holds bad nights since its last good one has an open finding. Bad tonight makes
it persistent, good tonight fixed; undecided, it stays open. Bad without one is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from poolbisect.evidence.environment import (
    SeriesPoint,
    code_changed,
    runner_changed,
    version_changes,
)
from poolbisect.evidence.findings import SeriesFinding, SeriesKind
from poolbisect.evidence.verdict import Verdict
from poolbisect.nightly.judging import Judged
from poolbisect.nightly.past import (
    OpenFinding,
    PastNight,
    last_good,
    night_name,
    open_finding,
)
from poolbisect.nightly.series import SeriesKey
from poolbisect.nightly.subjects import short_name


class FindingState(StrEnum):
    NEW = "new"
    PERSISTENT = "persistent"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a series, or no longer.

    `loss`: the drop in accuracy (share of one), None where it is about something else. `since`:
    ISO time of the night it began. `lost`, `gained`: questions against the last good night or the
    reference. `adjusted`: `p_value` corrected for all tests of the night. `nights`: bad nights,
    tonight included. `culprit` is put in by the search.
    """

    state: FindingState
    key: SeriesKey
    subject: str
    text: str
    loss: float | None
    p_value: float | None
    since: str
    adjusted: float | None = None
    last_good: str | None = None
    lost: int | None = None
    gained: int | None = None
    nights: int = 1
    code_unchanged: bool = False
    culprit: dict[str, Any] | None = field(default=None)


def finding(judged: Judged, started: str, tonight: PastNight) -> Finding | None:
    """The finding of one series, None if there is none.

    `started`: tonight's ISO time; `tonight`: the series' night as it will be remembered.
    """
    past = judged.tonight.past
    found, good = open_finding(past), last_good(past)
    if judged.verdict is Verdict.BAD:
        return _bad(judged, started, found, good, tonight)
    if found is None:
        return None
    since = night_name(found.since.started)
    state = FindingState.PERSISTENT
    text = f"bad since {since} ({_nights(found.nights)}), and tonight cannot say: {judged.reason}"
    if judged.verdict is Verdict.GOOD:
        state = FindingState.FIXED
        text = f"bad from {since} on ({_nights(found.nights)}), good tonight: {judged.reason}"
        text += _swap(past[-1:], judged)
    return Finding(
        state=state,
        key=judged.key,
        subject=judged.tonight.subject,
        text=text,
        loss=found.loss,
        p_value=None,
        since=found.since.started,
        last_good=None if good is None else good.started,
        nights=found.nights,
    )


def _bad(
    judged: Judged,
    started: str,
    found: OpenFinding | None,
    good: PastNight | None,
    tonight: PastNight,
) -> Finding:
    worst = judged.worst
    paired = None if worst is None else worst.paired
    counts = f" ({paired.lost} lost, {paired.gained} gained)" if paired is not None else ""
    text = f"{judged.reason}{counts}"
    unchanged = False
    if found is None:
        text += "" if good is None else _cause(good, tonight, judged)
        unchanged = good is not None and _same_code(good, tonight)
        if not judged.tonight.past:
            text += "; the first night of this series"
        elif good is None:
            text += "; no night of this series is known to have been good"
        elif good is not None and judged.tonight.past[-1] is not good:
            text += f"; nights since {night_name(good.started)} could not say, it may be older"
    else:
        text += f"; since {night_name(found.since.started)}, night {found.nights + 1}"
        if found.undecided:
            text += f", or on one of {_nights(found.undecided)} before that could not say"
    return Finding(
        state=FindingState.NEW if found is None else FindingState.PERSISTENT,
        key=judged.key,
        subject=judged.tonight.subject,
        text=text,
        loss=judged.loss,
        p_value=None if worst is None else worst.judgement.p_value,
        since=started if found is None else found.since.started,
        adjusted=judged.adjusted,
        last_good=None if good is None else good.started,
        lost=None if paired is None else paired.lost,
        gained=None if paired is None else paired.gained,
        nights=1 if found is None else found.nights + 1,
        code_unchanged=unchanged,
    )


def _nights(count: int) -> str:
    return "1 night" if count == 1 else f"{count} nights"


def _swap(before: Sequence[PastNight], judged: Judged) -> str:
    names = {night.subject for night in before} - {judged.tonight.subject}
    if not names:
        return ""
    return f"; {short_name(judged.tonight.subject)} in place of {short_name(names.pop())}"


def _cause(good: PastNight, tonight: PastNight, judged: Judged) -> str:
    """What is different from the last good night: subject, code, dependencies, runner."""
    before, after = _point(good), _point(tonight)
    words = _swap([good], judged)
    if _same_code(good, tonight):
        words += "; the code is that of the last good night"
    if changes := version_changes(before, after):
        words += f"; changed: {', '.join(map(str, changes))}"
    if runner_changed(before, after):
        words += f"; runner {before.runner} → {after.runner}"
    return words


def _same_code(good: PastNight, tonight: PastNight) -> bool:
    return code_changed([_point(good), _point(tonight)]) is False


def _point(night: PastNight) -> SeriesPoint:
    return SeriesPoint(night.accuracy or 0.0, night.runner, night.dependencies, night.revision)


def why_no_search(found: Finding, series: SeriesFinding | None) -> str | None:
    """Why no commit is to be blamed for a new finding, None if the code may be the cause."""
    if found.code_unchanged:
        return "no culprit is looked for: the code did not change"
    if series is not None and series.kind is SeriesKind.TWO_VALUED:
        return f"no culprit is looked for: {series.summary}"
    if series is not None and series.kind is SeriesKind.ENVIRONMENT:
        return f"no culprit is looked for: {series.summary}"
    return None


class NightVerdict(StrEnum):
    """What is concluded of a night."""

    NO_REGRESSION = "no_regression"
    REGRESSION = "regression"
    INFRASTRUCTURE = "infrastructure"
    INCONCLUSIVE = "inconclusive"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self]


_EXIT_CODES = {
    NightVerdict.NO_REGRESSION: 0,
    NightVerdict.REGRESSION: 1,
    NightVerdict.INFRASTRUCTURE: 3,
    NightVerdict.INCONCLUSIVE: 4,
    NightVerdict.INTERRUPTED: 130,
}


def night_verdict(
    states: Iterable[Verdict],
    findings: Iterable[Finding],
    *,
    measured: bool,
    failed: bool,
    interrupted: bool = False,
) -> NightVerdict:
    """The night as a whole: a new or persistent finding stays red until a night shows it fixed.

    `measured`: whether any series was; `failed`: whether a part of the night could not be done.
    """
    if interrupted:
        return NightVerdict.INTERRUPTED
    if any(one.state is not FindingState.FIXED for one in findings):
        return NightVerdict.REGRESSION
    if not measured:
        return NightVerdict.INFRASTRUCTURE
    if failed or any(state is not Verdict.GOOD for state in states):
        return NightVerdict.INCONCLUSIVE
    return NightVerdict.NO_REGRESSION
