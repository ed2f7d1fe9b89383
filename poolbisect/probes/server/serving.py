"""One server up: launched, healthy, asked any number of times, ended without a trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from poolbisect.errors import InfrastructureError
from poolbisect.probes.command.process import Finished, Running
from poolbisect.probes.server import client
from poolbisect.probes.server.client import Address
from poolbisect.probes.server.devices import wait_until_freed
from poolbisect.probes.server.endings import DURING_THE_RUN, Finding, ServerEnd, of_a_sign
from poolbisect.probes.server.flags import gpus_of, shown
from poolbisect.probes.server.health import Patience, ended_by_itself, wait_until_healthy
from poolbisect.probes.server.installing import Installation
from poolbisect.probes.server.leases import Lease, NoLeaseError, lease
from poolbisect.probes.server.ledger import Entry, end_orphans, recorded
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.ports import free_port, holder_words, is_free, wait_until_free
from poolbisect.probes.server.server_log import ServerLog
from poolbisect.scenario import Scenario

_PORT_TRIES = 3
_FREED_SECONDS = 60.0
_DYING_SECONDS = 1.0
"""How long after lost answers a server's end is waited for."""

Watch = Callable[[str], None]


class NotServingError(Exception):
    """A server did not come up; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.detail)
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Traces:
    """What a server left: names of processes that had to be ended, and what could not be freed."""

    left: tuple[str, ...] = ()
    trouble: str = ""


@dataclass
class Serving:
    """A healthy server of this process. Make one with `launch`; `end` it, on any way out."""

    installation: Installation
    address: Address
    argv: tuple[str, ...]
    model: str
    log: ServerLog
    lease: Lease
    _running: Running = field(repr=False)
    _entry: Entry = field(repr=False)
    _held: ExitStack = field(repr=False)
    _traces: Traces | None = field(default=None, repr=False)

    def __enter__(self) -> Serving:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def alive(self) -> bool:
        return self._running.poll() is None

    def note_processes(self) -> None:
        """Put on record what the server consists of by now."""
        self._entry.note_processes(self._running.pid)

    def why_it_ended(self, since: int) -> Finding | None:
        """Why the process is gone, or is about to go; None if it lives and its log says nothing.

        `since` is the log's size when what is now asked about began.
        """
        finished = self._running.wait(_DYING_SECONDS)
        text = self.log.text(since)
        if finished is not None:
            return ended_by_itself(finished, text, when=DURING_THE_RUN)
        return of_a_sign(text, when=DURING_THE_RUN)

    def provenance(self) -> dict[str, Any]:
        """What exactly runs, JSON-ready."""
        facts = client.server_facts(self.address)
        return {
            **self.installation.facts,
            "command": shown(self.argv),
            "port": self.address.port,
            "process": self._running.pid,
            "devices": list(self.lease.names),
            "model": self.model,
            "server_version": _text(facts, "version"),
        }

    def end(self) -> Traces:
        """End the server's whole tree, see that port and memory are free, give the lease back."""
        if self._traces is None:
            try:
                finished = self._running.end()
                self._traces = _traces(finished, self.address, self.lease)
            finally:
                self._held.close()
        return self._traces


def launch(
    installation: Installation,
    options: ServerOptions,
    flags: tuple[str, ...],
    model: str,
    folder: Path,
    watch: Watch,
    scenario: Scenario | None = None,
) -> Serving:
    """Bring up a server, its log in `folder`/server.log; a scenario may set its environment.

    First servers that a killed run has left on this host are ended, then devices are leased.

    Raises:
        NotServingError: it does not come up, whoever's fault that is. Nothing of it is left.
        UsageError: the command cannot be filled in.
    """
    for orphan in end_orphans(options.leases):
        watch(f"ended a server that a killed run had left: {orphan[:60]}")
    gpus = options.gpus or gpus_of(flags)
    if scenario is not None and scenario.server is not None:
        more = scenario.server.environment
        installation = replace(installation, environment={**installation.environment, **more})
    with ExitStack() as held:
        try:
            taken = held.enter_context(lease(options.leases, gpus, options.lease_timeout, watch))
        except NoLeaseError as error:
            raise NotServingError(Finding(ServerEnd.HOST, str(error).rstrip("."))) from error
        for last in (False,) * (_PORT_TRIES - 1) + (True,):
            try:
                return _attempt(installation, options, flags, model, folder, taken, held, watch)
            except NotServingError as error:
                if error.finding.end is not ServerEnd.PORT or options.port is not None or last:
                    raise
                watch("the port was taken meanwhile: trying another one")
    raise AssertionError("the last try returns or raises")


def _attempt(
    installation: Installation,
    options: ServerOptions,
    flags: tuple[str, ...],
    model: str,
    folder: Path,
    taken: Lease,
    held: ExitStack,
    watch: Watch,
) -> Serving:
    port = options.port or free_port(options.host)
    if not is_free(options.host, port):
        sentence = f"port {port} is taken by {holder_words(options.host, port)}"
        raise NotServingError(Finding(ServerEnd.PORT, sentence))
    argv = options.argv(
        python=installation.python, model=model, port=port, flags=flags, tree=installation.tree
    )
    address = Address(options.host, port)
    log = ServerLog(folder / "server.log")
    log.path.unlink(missing_ok=True)
    with ExitStack() as started:
        try:
            running = Running(
                argv,
                cwd=installation.cwd,
                env={**installation.environment, **taken.environment()},
                log=log.path,
                stdout=Path(os.devnull),
                grace=options.grace,
            )
        except InfrastructureError as error:
            raise NotServingError(Finding(ServerEnd.HOST, str(error).rstrip("."))) from error
        entry = started.enter_context(recorded(options.leases, running.mark, port, shown(argv)))
        started.enter_context(running)
        patience = Patience(options.health_timeout, options.stall_timeout)
        finding = wait_until_healthy(running, address, log, patience, watch)
        if finding is not None:
            raise NotServingError(finding)
        watch("healthy")
        name = client.served_model(address)
        whole = ExitStack()
        whole.enter_context(held.pop_all())
        whole.enter_context(started.pop_all())
        entry.note_processes(running.pid)
        return Serving(installation, address, argv, name, log, taken, running, entry, whole)


def _traces(finished: Finished, address: Address, taken: Lease) -> Traces:
    trouble = []
    if finished.stuck:
        trouble.append(f"processes {', '.join(map(str, finished.stuck))} could not be ended")
    if not wait_until_free(address.host, address.port, _FREED_SECONDS):
        trouble.append(
            f"port {address.port} is still held by {holder_words(address.host, address.port)}"
        )
    held = wait_until_freed(taken.devices, _FREED_SECONDS)
    if held:
        trouble.append(held)
    return Traces(finished.left, "; ".join(trouble))


def _text(facts: Mapping[str, Any], name: str) -> str | None:
    value = facts.get(name)
    return value if isinstance(value, str) else None
