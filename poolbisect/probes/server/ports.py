"""TCP ports on this host: a free one, whether one is free, and who holds it."""

from __future__ import annotations

import contextlib
import errno
import socket
import time

import psutil

from poolbisect.probes.command.tree import MARK

_LOOK = 0.05
_EVERY_ADDRESS = ("0.0.0.0", "::", "::1")


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there. Connections that linger after one do not matter."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def wait_until_free(host: str, port: int, seconds: float) -> bool:
    """Whether the port came free. A killed process holds it until its last thread is gone."""
    until = time.monotonic() + seconds
    while not is_free(host, port):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK)
    return True


def listeners(host: str, port: int) -> list[psutil.Process]:
    """Processes that answer at a port of this address, as far as they may be looked at."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if any(
                connection.status == psutil.CONN_LISTEN
                and connection.laddr.port == port
                and connection.laddr.ip in (host, *_EVERY_ADDRESS)
                for connection in process.net_connections(kind="tcp")
            ):
                found.append(process)
    return found


def holder_words(host: str, port: int) -> str:
    """`process 123 (name)`, or that it cannot be seen."""
    for process in listeners(host, port):
        with contextlib.suppress(psutil.Error):
            return f"process {process.pid} ({process.name()})"
    return "a process that cannot be seen from here"


def listens_for(host: str, port: int, mark: str) -> bool | None:
    """Whether a listener belongs to the tree with this mark; None where that cannot be seen."""
    belongs: bool | None = None
    for process in listeners(host, port):
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                return True
            belongs = False
    return belongs
