"""Waiting for a server to be healthy, with its log followed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from poolbisect.probes.command.process import Finished, Running
from poolbisect.probes.server.client import Address, TransportError, get
from poolbisect.probes.server.endings import (
    BEFORE_HEALTH,
    Finding,
    ServerEnd,
    of_a_sign,
    of_an_exit,
)
from poolbisect.probes.server.log_signs import last_words
from poolbisect.probes.server.ports import holder_words, listens_for
from poolbisect.probes.server.server_log import ServerLog

_LOOK = 0.1
_ANSWER_SECONDS = 5.0
_GENERATE_SECONDS = 60.0
_FATAL_SECONDS = 20.0
"""How long a server may live on after its log has named a reason to fail."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server may take to be healthy, and to say nothing meanwhile; in seconds."""

    health: float
    stall: float


def wait_until_healthy(
    running: Running,
    address: Address,
    log: ServerLog,
    patience: Patience,
    watch: Callable[[str], None],
) -> Finding | None:
    """None once the server answers and has generated a token; else why it never will.

    SGLang's `/health_generate` generates one; a server that does not have it is believed
    its `/health`.
    """
    started = grew = time.monotonic()
    seen, fatal_since = 0, None
    while True:
        finished = running.wait(_LOOK)
        if finished is not None:
            return ended_by_itself(finished, log.text(), when=BEFORE_HEALTH)
        now = time.monotonic()
        if log.size > seen:
            seen, grew = log.size, now
            watch(f"starting: {(last_words(log.text()) or '')[:80]}")
            if fatal_since is None and of_a_sign(log.text(), when=BEFORE_HEALTH) is not None:
                fatal_since = now
        if _is_healthy(address):
            return _belongs(address, running)
        if fatal_since is not None and now - fatal_since > min(_FATAL_SECONDS, patience.stall):
            return of_a_sign(log.text(), when=BEFORE_HEALTH)
        if now - started > patience.health:
            sentence = f"the server was not healthy after {patience.health:g} seconds"
            return Finding(ServerEnd.HEALTH_TIMEOUT, sentence, last_words(log.text()))
        if now - grew > patience.stall:
            sentence = (
                f"the server was not healthy and wrote nothing to its log for "
                f"{patience.stall:g} seconds"
            )
            return Finding(ServerEnd.HEALTH_TIMEOUT, sentence, last_words(log.text()))


def ended_by_itself(finished: Finished, log: str, *, when: str) -> Finding:
    """Why a server's process is no more although nobody here ended it."""
    if finished.failure and finished.status is not None:
        sentence = f"the server's command does not start ({finished.failure.lower()})"
        return Finding(ServerEnd.START, sentence)
    if finished.status is None and finished.signal is None:
        return Finding(ServerEnd.HOST, f"the server was lost {when} ({finished.failure})")
    status = finished.status if finished.status is not None else -(finished.signal or 0)
    return of_an_exit(status, log, when=when)


def _is_healthy(address: Address) -> bool:
    try:
        if not get(address, "/health", _ANSWER_SECONDS).ok:
            return False
        reply = get(address, "/health_generate", _GENERATE_SECONDS)
        return reply.ok or reply.status == HTTPStatus.NOT_FOUND
    except TransportError:
        return False


def _belongs(address: Address, running: Running) -> Finding | None:
    """That it is our server which answers, and not another that holds the port."""
    if listens_for(address.host, address.port, running.mark) is False:
        sentence = (
            f"port {address.port} is answered by {holder_words(address.host, address.port)} instead"
        )
        return Finding(ServerEnd.PORT, sentence)
    return None
