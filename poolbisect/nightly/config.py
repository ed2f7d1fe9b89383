"""What a night runs and how it decides: one TOML file, unknown keys refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, structs

from poolbisect.errors import UsageError
from poolbisect.scenario import Positive, Share, TomlTable, read_toml


class NightlyConfig(TomlTable, frozen=True):
    """The parts of a night.

    `subjects`: what is under test, the first in the role "under test"; `questions`: of every
    scenario, by default its own; `releases`: how many of the newest releases to measure as well;
    `alpha`: chance of any false alarm a night; `minimum-drop`: a smaller drop is never red (share
    of one); `window`: nights in the mean; `keep-answers`: nights whose answers stay recorded.
    """

    scenarios: tuple[str, ...]
    subjects: tuple[str, ...] = ("corrected",)
    questions: Positive | None = None
    releases: Annotated[int, Meta(ge=0, le=20)] = 0
    alpha: Share = 0.001
    minimum_drop: Annotated[float, Meta(ge=0, lt=1)] = 0.01
    window: Annotated[int, Meta(ge=2)] = 7
    keep_answers: Positive = 30


def load_config(path: Path | None = None) -> NightlyConfig:
    """The configuration in a file, by default the shipped one.

    Scenario files are relative to the configuration's folder. UsageError names file and key.
    """
    source = path or Path(__file__).with_name("default.toml")
    config: NightlyConfig = read_toml(source, NightlyConfig)
    for key in ("scenarios", "subjects"):
        if not getattr(config, key):
            raise UsageError(f"{source}: {key} is empty; a night measures at least one")
    folder = source.parent
    scenarios = tuple(
        str(folder / name) if name.endswith(".toml") else name for name in config.scenarios
    )
    return structs.replace(config, scenarios=scenarios)
