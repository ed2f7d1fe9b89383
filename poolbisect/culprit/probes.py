"""From a probe's name to the probe."""

from __future__ import annotations

from pathlib import Path

from poolbisect.culprit.interface import HistoryProbe, Watch
from poolbisect.culprit.request import BisectRequest
from poolbisect.errors import UsageError
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.release_ranges import ReleaseRange
from poolbisect.scenario import Scenario


def open_probe(
    request: BisectRequest, history: HistoryRange, scratch: Path, watch: Watch
) -> HistoryProbe:
    """The probe a request asks for; `scratch` is where it may keep worktrees and environments.
    `watch` hears what it does before the search begins.

    Raises:
        UsageError: the request lacks what the probe needs.
    """
    match request.probe:
        case "contract":
            from poolbisect.culprit.contract import ContractHistoryProbe

            return ContractHistoryProbe(history, _scenario(request))
        case "miniature":
            from poolbisect.culprit.miniature import MiniatureHistoryProbe

            return MiniatureHistoryProbe(history, _scenario(request), request.options)
        case "command":
            from poolbisect.probes.command.options import restored
            from poolbisect.probes.command.probe import CommandProbe

            assert isinstance(history, CommitRange | ReleaseRange)
            argv, options = restored(request.options)
            return CommandProbe(history, argv, options, scratch, find=request.find, watch=watch)
        case "server":
            from poolbisect.probes.server import options as server
            from poolbisect.probes.server.probe import ServerProbe

            chosen = server.restored(request.options)
            return ServerProbe(history, chosen, scratch, request.scenario)
    raise UsageError(f"there is no probe {request.probe!r}")


def _scenario(request: BisectRequest) -> Scenario:
    if request.scenario is None:
        raise UsageError(f"--probe {request.probe} needs a scenario; give --scenario")
    return request.scenario
