"""A series tonight of given answers, against a past."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from poolbisect.baselines import Baseline, load_baselines
from poolbisect.evidence.paired import compare_paired
from poolbisect.evidence.verdict import Verdict
from poolbisect.judging import SubjectVerdict
from poolbisect.measurement import Measurement
from poolbisect.nightly.past import PastNight, last_good
from poolbisect.nightly.series import LastGood, SeriesKey, Tonight
from poolbisect.scenario import Scenario, load_scenario

MakeTonight = Callable[..., Tonight]


@pytest.fixture(scope="session")
def canary() -> Scenario:
    return load_scenario("mimo-canary")


@pytest.fixture(scope="session")
def miniature_baseline() -> Baseline:
    return next(b for b in load_baselines("mimo-canary") if b.name == "miniature")


@pytest.fixture(scope="session")
def tonight(measured: Callable[..., Measurement], canary: Scenario) -> MakeTonight:
    """A series tonight whose questions `wrong` are answered wrongly, against a past.

    `before` are the questions wrong on the last good night (None: not recorded any more), and
    `reference_wrong` those of the reference, where the subject is not the reference itself.
    """

    def make(
        wrong: range | set[int] = range(0),
        *,
        past: tuple[PastNight, ...] = (),
        before: range | set[int] | None = None,
        reference_wrong: range | set[int] | None = None,
        asked: int = 1319,
        role: str = "under test",
        subject: str = "corrected",
        baseline: Baseline | None = None,
        scenario: Scenario = canary,
        verdict: Verdict = Verdict.GOOD,
        **more: Any,
    ) -> Tonight:
        measurement = measured(subject, asked=asked, wrong=wrong, **more)
        reference = None
        comparison = None
        if reference_wrong is not None:
            reference = measured("corrected", asked=asked, wrong=reference_wrong)
            comparison = compare_paired(reference.outcomes(), measurement.outcomes())
        good = last_good(past)
        recorded = None
        if good is not None:
            known = {} if before is None else {str(n): n not in before for n in range(asked)}
            recorded = LastGood(good, known)
        return Tonight(
            key=SeriesKey(scenario.name, "workload", role),
            subject=subject,
            scenario=scenario,
            verdict=SubjectVerdict(measurement, verdict, "as run says", None, comparison),
            reference=reference,
            baseline=baseline,
            past=past,
            last_good=recorded,
        )

    return make
