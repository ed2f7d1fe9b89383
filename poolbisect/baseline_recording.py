"""The workflow of `baseline record`: runs become a baseline, and the old one becomes history."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from math import sqrt
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from filelock import FileLock
from tomlkit.exceptions import TOMLKitError

from poolbisect.baselines import (
    Baseline,
    BaselineSpread,
    Change,
    Former,
    Gate,
    baseline_file,
    read_baselines,
)
from poolbisect.errors import InfrastructureError, NotApplicableError, UsageError
from poolbisect.evidence.baseline import baseline_of
from poolbisect.evidence.comparability import BaselineKey
from poolbisect.formats import ScoreFile
from poolbisect.scenario import scenario_folder
from poolbisect.tasks.arithmetic import HARNESS_VERSION

_DIGITS = 6
_INSTALLED = "_scenarios"


@dataclass(frozen=True, slots=True)
class Recording:
    """What is to be recorded, as the user said it; `key` fills in what the runs do not say."""

    scenario: str
    reason: str
    name: str | None = None
    source: str | None = None
    spread_kind: BaselineSpread | None = None
    gate: Gate | None = None
    key: Mapping[str, str] = field(default_factory=dict)


def recording_folder(folder: Path | None) -> Path:
    """Where baselines are written: `folder`, or beside the scenarios of a checkout.

    UsageError in an installed package, or where nothing can be written.
    """
    chosen = folder or scenario_folder() / "baselines"
    parent = chosen if chosen.exists() else chosen.parent
    if folder is None and (scenario_folder().name == _INSTALLED or not os.access(parent, os.W_OK)):
        raise UsageError(
            f"{chosen}: baselines of an installed package are not changed; give --baselines DIR"
        )
    try:
        chosen.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{chosen}: {(error.strerror or str(error)).lower()}") from error
    return chosen


def record_baseline(
    runs: Sequence[ScoreFile], recording: Recording, folder: Path, today: date
) -> tuple[Path, Baseline]:
    """Record the mean and spread of `runs` (at least one); the file and the new baseline.

    One run has a binomial spread, several have their run-to-run standard deviation. A baseline of
    the same key and name is replaced, and what it said is kept in its history. UsageError without
    a reason or with an incomplete key, NotApplicableError where a run is no whole score.
    """
    if not recording.reason.strip():
        raise UsageError("a baseline needs a reason: --reason 'why it is set or changed'")
    new = _baseline(runs, recording, today)
    path = baseline_file(recording.scenario, folder)
    lock = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    with FileLock(Path(tempfile.gettempdir()) / f"poolbisect-{lock}.lock", timeout=60):
        recorded = read_baselines(path)
        place = _place(recorded, new, recording.name, path)
        if place is not None:
            new = _with_history(recorded[place], new)
        _write(path, new, place)
    return path, new


def _baseline(runs: Sequence[ScoreFile], recording: Recording, today: date) -> Baseline:
    sources = [run.source for run in runs]
    twice = next((one for one in sources if sources.count(one) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice; a spread needs different runs")
    for run in runs:
        if run.unusable or run.score is None:
            raise NotApplicableError(f"{run.unusable or run.source}; a baseline needs whole runs")
        if run.lost:
            raise NotApplicableError(
                f"{run.source} lost {run.lost} questions; a baseline needs whole runs"
            )
    scores = [run.score for run in runs if run.score is not None]
    key = _key(runs, recording.key)
    mean = sum(scores) / len(scores)
    count = int(key["n"])
    kind = recording.spread_kind
    if len(scores) > 1:
        spread, number = baseline_of(scores).sd, len(scores)
        kind = kind or BaselineSpread.RUN_TO_RUN
    else:
        spread, number = sqrt(mean * (1 - mean) / count), None
        if kind not in (None, BaselineSpread.BINOMIAL):
            raise UsageError(f"a {kind} spread needs at least two runs, got one")
        kind = BaselineSpread.BINOMIAL
    lengths = [run.accept_length for run in runs if run.accept_length is not None]
    return Baseline(
        name=recording.name or str(key["hardware"]),
        mean=round(mean, _DIGITS),
        spread=round(spread, _DIGITS),
        spread_kind=kind,
        runs=None if kind is BaselineSpread.BINOMIAL else number,
        accept_length=round(sum(lengths) / len(lengths), 4) if lengths else None,
        source=recording.source or ", ".join(Path(run.source).name for run in runs),
        gate=recording.gate,
        changes=[Change(date=today.isoformat(), reason=recording.reason.strip())],
        **key,
    )


def _key(runs: Sequence[ScoreFile], told: Mapping[str, str]) -> dict[str, Any]:
    """The full key: as the runs say, all alike, and as told where they do not."""
    names = [one.name for one in fields(BaselineKey)]
    unknown = [name for name in told if name not in names]
    if unknown:
        raise UsageError(f"--key {unknown[0]}: no such field; there are {', '.join(names)}")
    key: dict[str, Any] = {}
    for name in names:
        said = {run.asked if name == "n" else run.facts.get(name) for run in runs} - {None}
        if len(said) > 1:
            values = ", ".join(sorted(map(str, said)))
            raise NotApplicableError(f"the runs differ in {name} ({values}), so they are no series")
        if not said and name == "harness_version" and runs[0].scenario:
            said = {HARNESS_VERSION}
        value: Any = next(iter(said), told.get(name))
        if value is None:
            raise UsageError(
                f"{runs[0].source} does not say {name}, which a baseline needs; give --key {name}=…"
            )
        key[name] = _whole(name, value) if name in ("n", "shots") else str(value)
    return key


def _whole(name: str, value: object) -> int:
    if not str(value).isascii() or not str(value).isdigit():
        raise UsageError(f"--key {name}={value}: not a whole number")
    return int(str(value))


def _place(recorded: list[Baseline], new: Baseline, name: str | None, path: Path) -> int | None:
    """Which baseline the new one replaces: that of its key, and of its name if it was given."""
    for place, old in enumerate(recorded):
        if old.key == new.key and (name is None or old.name == name):
            return place
    if any(old.name == new.name for old in recorded):
        raise UsageError(
            f"{path}: a baseline named {new.name!r} with another key is recorded; "
            "give another --name"
        )
    return None


def _with_history(old: Baseline, new: Baseline) -> Baseline:
    former = Former(
        mean=old.mean,
        spread=old.spread,
        spread_kind=old.spread_kind,
        source=old.source,
        runs=old.runs,
        accept_length=old.accept_length,
        gate=old.gate,
    )
    latest = msgspec.structs.replace(new.changes[0], former=former)
    return msgspec.structs.replace(
        new,
        name=old.name,
        gate=new.gate or old.gate,
        changes=[*old.changes, latest],
    )


def _write(path: Path, new: Baseline, place: int | None) -> None:
    """Put the baseline into its file; comments and other baselines stay as they are."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        document = tomlkit.parse(text)
        if "baselines" not in document:
            document["baselines"] = tomlkit.aot()
        entries: Any = document["baselines"]
        if place is None:
            entries.append(_table(new))
        else:
            _update(entries[place], new)
        written = tomlkit.dumps(document)
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML that can be changed: {error}") from error
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(written, encoding="utf-8")
        # Read it back before it takes the place of the old file.
        read_baselines(draft)
        os.replace(draft, path)
    except OSError as error:
        raise InfrastructureError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    finally:
        draft.unlink(missing_ok=True)


def _plain(value: Any) -> dict[str, Any]:
    """A baseline, gate or change as plain TOML values: kebab-case keys, no key for nothing."""
    built: dict[str, Any] = msgspec.to_builtins(value)
    return {
        key: _without_none(one) if isinstance(one, dict) else one
        for key, one in built.items()
        if one is not None
    }


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


def _table(new: Baseline) -> Any:
    table = tomlkit.table()
    plain = _plain(new)
    changes, gate = plain.pop("changes"), plain.pop("gate", None)
    for key, value in plain.items():
        table[key] = value
    if gate is not None:
        table["gate"] = _without_none(gate)
    table["changes"] = tomlkit.aot()
    for change in changes:
        table["changes"].append(tomlkit.item(_without_none(change)))
    return table


def _update(entry: Any, new: Baseline) -> None:
    plain = _plain(new)
    changes, gate = plain.pop("changes"), plain.pop("gate", None)
    for key in ("runs", "accept-length"):
        if key not in plain and key in entry:
            del entry[key]
    for key, value in plain.items():
        if entry.get(key) != value:
            entry[key] = value
    if gate is not None and entry.get("gate") != _without_none(gate):
        entry["gate"] = _without_none(gate)
    entry["changes"].append(tomlkit.item(_without_none(changes[-1])))
