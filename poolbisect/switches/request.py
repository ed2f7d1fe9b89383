"""What is asked of a configuration bisect, whole: its journal keeps it, to be resumed from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from poolbisect.errors import UsageError
from poolbisect.scenario import Scenario
from poolbisect.switches.launch import LaunchOracle
from poolbisect.switches.plan import Plan
from poolbisect.switches.switch import Switch

PROBES = ("miniature", "server", "command")


class ConfigRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`scenario` is None for a command. `symptom`: what makes a launch bad, in a word. `folder`:
    where a command runs, or the repository of commits; `options`: the probe's own, as it stores
    them. `tabulate`: score against concurrency, None for where that turns out to matter."""

    probe: str
    scenario: Scenario | None
    subject: str
    symptom: str
    switches: tuple[Switch, ...]
    plan: Plan
    questions: int | None = None
    tabulate: bool | None = None
    seed: int | None = None
    device: str = "cpu"
    folder: str | None = None
    options: dict[str, Any] = {}


def open_oracle(request: ConfigRequest, reports: Path) -> LaunchOracle:
    """What launches the request's subject; logs of launches go below `reports`.

    Raises:
        UsageError, NotApplicableError: no configuration can be launched.
    """
    folder = None if request.folder is None else Path(request.folder)
    if request.probe == "command":
        from poolbisect.probes.command.options import restored
        from poolbisect.switches.command import CommandOracle

        argv, options = restored(request.options)
        return CommandOracle(
            argv, request.switches, options, folder=reports, cwd=folder or Path.cwd()
        )
    if request.scenario is None:
        raise UsageError(
            f"--config --probe {request.probe} needs --scenario; `poolbisect scenarios` lists them"
        )
    if request.probe == "server":
        from poolbisect.probes.server import options as server
        from poolbisect.switches.server import ServerOracle

        return ServerOracle(
            request.scenario, request.subject, request.switches, server.restored(request.options),
            folder=reports, questions=request.questions, repo=folder,
        )  # fmt: skip
    from poolbisect.probes.miniature import Settings, check_device
    from poolbisect.switches.miniature import MiniatureOracle

    check_device(request.device)
    return MiniatureOracle(
        request.scenario,
        request.subject,
        request.switches,
        questions=request.questions or request.scenario.workload.questions,
        settings=Settings(device=request.device, seed=request.seed),
        repo=folder,
    )
