"""What the user chooses about a server, beside the scenario."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.errors import UsageError
from poolbisect.history.releases import default_cache_dir
from poolbisect.probes.server.leases import default_lease_folder

SGLANG_COMMAND = (
    *("{python}", "-m", "sglang.launch_server", "--model-path", "{model}"),
    *("--host", "{host}", "--port", "{port}", "{flags}"),
)
PLACEHOLDERS = ("{python}", "{model}", "{host}", "{port}", "{flags}", "{tree}")


class Isolation(StrEnum):
    """Where a server's packages come from."""

    PER_COMMIT = "per-commit"
    """A virtual environment with the dependencies that the code under test declares."""
    GIVEN = "given"
    """The interpreter as it is, whatever is declared."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to launch, ask and end a server. Times in seconds.

    `model`: a folder or a name, what the scenario serves where None. `command`: argv template with
    PLACEHOLDERS. `flags`: added after the scenario's. `module`: the package whose origin proves
    which code runs. `pyproject`: what declares a commit's dependencies. `trees`: where work trees
    lie, the cache where None. `evaluation`: a JSONL file of questions, else the scenario's task.
    `eval_command`: argv of an evaluation of the user's, with {url}, {model} and {out}; `asked`:
    how many questions it asks. `gpus`: devices to lease, as many as the flags say where None.
    `rounds`: how often a run asks everything. `rule`: the lowest good score, or with `symptom`
    accept-length the lowest good accept length.
    """

    model: str | None = None
    command: tuple[str, ...] = SGLANG_COMMAND
    flags: tuple[str, ...] = ()
    module: str = "sglang"
    python: Path = field(default_factory=lambda: Path(sys.executable))
    isolation: Isolation = Isolation.PER_COMMIT
    pyproject: str = "pyproject.toml"
    environments: Path = field(default_factory=lambda: default_cache_dir() / "environments")
    trees: Path | None = None
    leases: Path = field(default_factory=default_lease_folder)
    lease_timeout: float = 3600.0
    build_timeout: float = 3600.0
    health_timeout: float = 1800.0
    stall_timeout: float = 600.0
    question_timeout: float = 300.0
    grace: float = 10.0
    host: str = "127.0.0.1"
    port: int | None = None
    gpus: int | None = None
    evaluation: Path | None = None
    shots: int | None = None
    concurrency: int | None = None
    eval_command: tuple[str, ...] = ()
    eval_timeout: float = 7200.0
    asked: int | None = None
    rounds: int = 1
    symptom: str = "accuracy"
    rule: float | None = None

    def __post_init__(self) -> None:
        joined = " ".join(self.command)
        if "{port}" not in joined:
            raise UsageError(
                "--server-command has no {port}; write it where the server's port belongs"
            )
        if self.symptom not in ("accuracy", "accept-length", "crash"):
            raise UsageError(
                f"a server cannot be judged by {self.symptom}: it does not say what it accesses; "
                "use --probe contract or miniature"
            )
        if self.eval_command and self.rule is None and self.asked is None:
            raise UsageError(
                "--eval-command needs --eval-asked, how many questions it asks, or --rule, the "
                "lowest good score"
            )
        if self.symptom == "accuracy" and self.rule is not None and not 0 < self.rule < 1:
            raise UsageError(f"--rule {self.rule:g}: give a score between 0 and 1")

    def argv(
        self, *, python: Path, model: str, port: int, flags: tuple[str, ...], tree: Path | None
    ) -> tuple[str, ...]:
        """The command with everything in its place. UsageError where {tree} has nothing to be."""
        if tree is None and any("{tree}" in part for part in self.command):
            raise UsageError("--server-command names {tree}, but what is served is no commit")
        values = {
            "{python}": str(python),
            "{model}": model,
            "{host}": self.host,
            "{port}": str(port),
            "{tree}": str(tree or ""),
        }
        filled: list[str] = []
        for part in self.command:
            if part == "{flags}":
                filled += flags
                continue
            for name, value in values.items():
                part = part.replace(name, value)
            filled.append(part)
        return tuple(filled)


def stored(options: ServerOptions) -> dict[str, Any]:
    """JSON-ready, as a session keeps it."""
    found: dict[str, Any] = msgspec.to_builtins(options, enc_hook=str)
    return found


def restored(kept: Mapping[str, Any]) -> ServerOptions:
    """What `stored` was given; what it does not hold is as by default. UsageError otherwise."""
    if unknown := sorted(kept.keys() - {one.name for one in fields(ServerOptions)}):
        raise UsageError(f"a server probe has no option {unknown[0]!r}")
    try:
        return msgspec.convert(kept, ServerOptions, dec_hook=_as_path)
    except msgspec.ValidationError as error:
        raise UsageError(f"a server probe's options cannot be read: {error}") from error


def _as_path(kind: type[Any], value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected a {kind.__name__}, got {value!r}")


def interpreter(python: Path) -> Path:
    """An interpreter as an absolute path that keeps to its virtual environment (links stay)."""
    return Path(os.path.abspath(python))
