"""The workflow of `poolbisect nightly`: measure, judge, sort, search, write down. In that order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from poolbisect.errors import PoolbisectError, UsageError
from poolbisect.history.releases import list_releases
from poolbisect.history.repository import open_repository
from poolbisect.nightly.concluding import conclude, with_verdict
from poolbisect.nightly.document import night_document, write
from poolbisect.nightly.environment import environment
from poolbisect.nightly.history import open_history
from poolbisect.nightly.reports import write_all
from poolbisect.nightly.request import Display, NightRequest
from poolbisect.nightly.running import RunningNight, measure
from poolbisect.nightly.subjects import Failure, plan_subjects
from poolbisect.reporting.folder import new_folder
from poolbisect.scenario import Scenario, load_scenario
from poolbisect.store.nights import forget_answers, record_night


def nightly(request: NightRequest, display: Display | None = None) -> dict[str, Any]:
    """Run a night; its document, which is in <out>/nightly/<UTC time>/result.json as well.

    A part that fails is reported and stops no other. An interrupt ends the measuring; what was
    measured until then is judged, recorded and written down.

    Raises:
        UsageError: no scenario can be read, a subject's name is none, `repo` is no repository, or
            `out` cannot be written.
    """
    display = display or Display()
    scenarios, failures = _scenarios(request.config.scenarios)
    config = request.config
    subjects, more = plan_subjects(
        config.subjects, config.releases, _tip(request.repo), list_releases
    )
    folder = new_folder(request.out, "nightly")
    night = RunningNight(request, folder, datetime.now(UTC), environment())
    night.failures += failures + more
    _open_history(night, display)
    measure(night, scenarios, subjects, display)
    report = conclude(night, display)
    write(night_document(report), folder)
    _remember(night, night_document(report))
    document = night_document(with_verdict(report, night))
    write(document, folder)
    for problem in write_all(folder, night.parts, request.out):
        display.says(problem)
    return document


def _scenarios(names: Sequence[str]) -> tuple[list[Scenario], list[Failure]]:
    found: dict[str, Scenario] = {}
    failures: list[Failure] = []
    first: UsageError | None = None
    for name in dict.fromkeys(names):
        try:
            scenario = load_scenario(name)
            _check_probe(scenario)
        except UsageError as error:
            first = first or error
            failures.append(Failure(name, str(error)))
            continue
        if scenario.name in found:
            failures.append(Failure(name, f"a second scenario named {scenario.name}; left out"))
        else:
            found[scenario.name] = scenario
    if not found and first is not None:
        raise first
    return list(found.values()), failures


def _check_probe(scenario: Scenario) -> None:
    try:
        scenario.check_probe("miniature")
    except UsageError as error:
        raise UsageError(
            f"{error}: these are options of `poolbisect run`, a night measures on the miniatures "
            "alone"
        ) from error


def _tip(repo: Path | None) -> str | None:
    if repo is None:
        return None
    with open_repository(repo) as opened:
        return opened.commit("HEAD").sha


def _open_history(night: RunningNight, display: Display) -> None:
    """A night without a database is judged by references and baselines alone."""
    try:
        night.history, damaged = open_history(night.request.store, night.request.out)
        for problem in damaged:
            display.says(problem)
            night.fail(None, f"left out of the history: {problem}")
    except PoolbisectError as error:
        night.fail(None, f"{error}; this night has no history and is not recorded")


def _remember(night: RunningNight, document: dict[str, Any]) -> None:
    if night.history is None:
        return
    try:
        record_night(night.history, document)
        forget_answers(night.history, night.request.config.keep_answers)
    except PoolbisectError as error:
        night.fail(None, f"{night.request.store}: this night was not recorded ({error})")
    finally:
        night.history.close()
