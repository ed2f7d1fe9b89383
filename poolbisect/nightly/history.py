"""The past of a series, out of the results database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poolbisect.nightly.past import PastNight, last_good
from poolbisect.nightly.series import LastGood, SeriesKey
from poolbisect.nightly.subjects import NightSubject
from poolbisect.scenario import Symptom
from poolbisect.store import Store, import_runs
from poolbisect.store.nights import accept_lengths, import_nights, outcomes, series_rows


def past_of(store: Store, key: SeriesKey, subject: NightSubject) -> tuple[PastNight, ...]:
    """The nights of a series so far: of its role, or of its name where that is its role."""
    role = None if subject.follows_name else key.role
    rows = series_rows(store, key.scenario, key.workload, role=role, subject=subject.subject)
    return tuple(
        PastNight(
            started=row["started"],
            subject=row["subject"],
            state=row["state"],
            accuracy=row["accuracy"],
            correct=row["correct"],
            answered=row["answered"],
            loss=row["loss"],
            run=row["run"],
            revision=row["revision"],
            runner=row["environment"].get("runner"),
            dependencies=dependencies(row["environment"], row["weights"]),
        )
        for row in rows
    )


def last_good_of(store: Store, past: tuple[PastNight, ...], symptom: Symptom) -> LastGood | None:
    """The last good night with what its answers tell about this symptom."""
    night = last_good(past)
    if night is None:
        return None
    if night.run is None:
        return LastGood(night)
    if symptom is Symptom.ACCEPT_LENGTH:
        lengths = accept_lengths(store, night.run, night.subject)
        return LastGood(night, accept_lengths=lengths)
    return LastGood(night, outcomes(store, night.run, night.subject))


def dependencies(environment: Mapping[str, Any], weights: str | None) -> dict[str, str] | None:
    """What a score depends on beside the code under test, by name; None if not recorded."""
    found = environment.get("dependencies")
    if not isinstance(found, Mapping):
        return None
    named = {str(name): str(version) for name, version in found.items()}
    return named | ({"weights": weights} if weights else {})


def open_history(path: Path, out: Path) -> tuple[Store, tuple[str, ...]]:
    """The results database at `path`, with the runs and nights below `out` read into it once.

    A file that is new, empty, made by `run`, or that an import left half filled is filled before
    it is used. With it, a sentence for every file below `out` that is damaged.

    InfrastructureError names a file that is damaged, locked or cannot be written; UsageError one
    that a newer version wrote.
    """
    store = Store(path)
    problems: tuple[str, ...] = ()
    try:
        with store.importing(out) as wanted:
            if wanted:
                found = (*import_runs(store, out).problems, *import_nights(store, out))
                problems = tuple(dict.fromkeys(found))
    except BaseException:
        store.close()
        raise
    return store, problems
