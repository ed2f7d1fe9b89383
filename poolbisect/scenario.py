"""Scenarios: what to run, what to look for, and what to expect. One TOML file each.

Unknown keys and wrong types are refused by name. Engine keys are upstream's server flags.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from poolbisect.engine.config import Behind, MappingAccess, PaddedRows
from poolbisect.errors import UsageError

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class Symptom(StrEnum):
    """What makes a subject bad; every other way to end is a class of its own."""

    ACCURACY = "accuracy"
    ACCEPT_LENGTH = "accept-length"
    CRASH = "crash"
    CONTRACT = "contract"


class Expectation(StrEnum):
    GOOD = "good"
    BAD = "bad"


class TomlTable(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A table of a TOML file of ours: kebab-case keys, unknown ones refused."""


class Workload(TomlTable, frozen=True):
    """The problems asked and how. `concurrency`: how many at once (default all); `temperature` 0
    is greedy."""

    task: str
    model: str
    questions: Positive
    shots: Annotated[int, Meta(ge=0)] = 0
    max_new_tokens: Positive = 96
    concurrency: Positive | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    seed: int = 0


class EngineFlags(TomlTable, frozen=True):
    """Upstream's server flags, as far as the miniature engine has what they configure."""

    dp_size: Positive = 1
    max_running_requests: Positive = 128
    page_size: Positive = 64
    context_length: Positive = 192
    cuda_graph_max_bs: Positive = 64
    enable_dp_attention: bool = False
    enable_multi_layer_eagle: bool = False
    speculative_algorithm: str | None = None
    speculative_num_steps: Annotated[int, Meta(ge=0)] = 0
    speculative_eagle_topk: Positive = 1
    speculative_num_draft_tokens: Positive = 1
    disable_overlap_schedule: bool = False
    max_mamba_cache_size: Positive | None = None
    mamba_scheduler_strategy: Literal["no_buffer", "extra_buffer"] = "no_buffer"
    disaggregation_mode: Literal["null", "decode"] = "null"


class Memory(TomlTable, frozen=True):
    """What upstream leaves to chance or to its environment.

    `padded-rows`: request slots of a graph's padded rows; `padded-writes`: whether padded rows
    write as well; `behind-hidden-states`: what lies behind the short buffer; `pre-alloc-size`:
    request slots a PD decode instance adds; `mapping-access`: whether the mamba mappings are
    indexed with bounds (torch) or without (a kernel).
    """

    padded_rows: PaddedRows = PaddedRows.STALE
    padded_writes: bool = False
    behind_hidden_states: Behind = Behind.UPSTREAM_ORDER
    pre_alloc_size: Annotated[int, Meta(ge=0)] = 0
    mapping_access: MappingAccess = MappingAccess.UNCHECKED


class ServerGate(TomlTable, frozen=True):
    """What upstream's own test of the server demands: the score at least, accept length above."""

    score: Share
    accept_length: Annotated[float, Meta(gt=0)] | None = None


class Server(TomlTable, frozen=True):
    """The real server of a scenario that the miniature cannot stand in for.

    `flags` are its arguments after the model and `environment` what is set for it, as upstream's
    test gives them.
    """

    flags: list[str]
    environment: dict[str, str] = {}
    gate: ServerGate | None = None


class Judging(TomlTable, frozen=True):
    """How a subject is judged against the reference subject (effects are shares of one)."""

    reference: str = "corrected"
    alpha: Share = 0.001
    smallest_drop: Share = 0.02


class ScenarioSubject(TomlTable, frozen=True):
    """A subject the scenario compares by default, and what should come of it."""

    name: str
    expect: Expectation


_TAKEN = ("nightly", "bisect", "timeline", "config", "example")
_NAME = rf"^(?!(?:{'|'.join(_TAKEN)})(?:-|$))[A-Za-z0-9][A-Za-z0-9._-]*$"


class Scenario(TomlTable, frozen=True):
    """One scenario, as its file states it. `name` is a folder of reports as well."""

    name: Annotated[str, Meta(pattern=_NAME)]
    title: str
    stands_for: str
    symptom: Symptom
    buffers: list[str]
    workload: Workload
    engine: EngineFlags
    subjects: list[ScenarioSubject]
    pools: str = "padding"
    memory: Memory = Memory()
    judging: Judging = Judging()
    server: Server | None = None

    @property
    def needs_server(self) -> bool:
        """Whether only the server probe can run it: its model is not one of the miniatures."""
        return self.server is not None

    def check_probe(self, probe: str) -> None:
        """UsageError when `probe` serves problems and cannot serve this scenario's model."""
        if self.needs_server and probe == "miniature":
            raise UsageError(
                f"{self.name} serves {self.workload.model} with the real SGLang: add "
                "--probe server (`poolbisect doctor` says what it needs), or look at its pools "
                "alone with --probe contract"
            )

    def expectation(self, subject: str) -> Expectation | None:
        return next((s.expect for s in self.subjects if s.name == subject), None)


def scenario_folder() -> Path:
    """Where the shipped scenarios are: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "_scenarios"
    return installed if installed.is_dir() else package.parent / "scenarios"


def scenario_names(folder: Path | None = None) -> list[str]:
    """Scenarios that run here and now, on the miniatures."""
    return [path.stem for path in _files(folder) if not _has_server_table(path)]


def server_scenario_names(folder: Path | None = None) -> list[str]:
    """Scenarios that only the server probe can run."""
    return [path.stem for path in _files(folder) if _has_server_table(path)]


def _files(folder: Path | None) -> list[Path]:
    return sorted((folder or scenario_folder()).glob("*.toml"), key=lambda path: path.stem)


def _has_server_table(path: Path) -> bool:
    """As far as a file can be read; what is wrong with it is said when it is loaded."""
    try:
        return "server" in msgspec.toml.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False


def load_scenario(name: str) -> Scenario:
    """A shipped scenario by name, or a file by its path (a name with `.toml`)."""
    if name.endswith(".toml"):
        return read_scenario(Path(name))
    known = [*scenario_names(), *server_scenario_names()]
    if name not in known:
        raise UsageError(
            f"no scenario is named {name!r}; there are {', '.join(known)}, "
            "or give the path of a .toml file"
        )
    return read_scenario(scenario_folder() / f"{name}.toml")


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file. UsageError, one sentence, names the file and the key at fault."""
    scenario: Scenario = read_toml(path, Scenario)
    if not scenario.subjects:
        raise UsageError(f"{path}: subjects is empty; a scenario compares at least one")
    return scenario


def read_toml(path: Path, kind: type[Any]) -> Any:
    """A TOML file as `kind`, a msgspec Struct. UsageError names the file and the key at fault."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_plainly(str(error))}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def _plainly(message: str) -> str:
    """A msgspec message with `$.engine.dp-size` written as `engine.dp-size`."""
    reason, _, where = message.partition(" - at `$")
    key = where.rstrip("`").lstrip(".")
    if "matching regex" in reason and key == "name":
        reason = (
            "expected letters, digits, dots, dashes and underscores, beginning with a letter or a "
            f"digit, and none of {', '.join(_TAKEN)}, which are folders of other reports"
        )
    reason = reason.replace("Object contains unknown field", "unknown key")
    reason = reason.replace("Object missing required field", "missing key")
    return f"{reason[0].lower()}{reason[1:]}" + (f" in {key}" if key else "")
