"""The HTTP client's side of an OpenAI-compatible server, on the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

_ANSWER_LIMIT = 64 << 20


class TransportError(Exception):
    """No whole answer came: refused, reset, timed out, or not HTTP."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP answer, whatever its status."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def document(self) -> Any:
        """The body as JSON. TransportError if it is none."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise TransportError(f"the answer is not JSON: {self.words()!r}") from error

    def words(self) -> str:
        """The start of the body on one line, for messages."""
        return " ".join(self.body[:400].decode("utf-8", errors="replace").split())[:160]


class Connection:
    """One kept-alive connection; opened anew when the server has closed it."""

    def __init__(self, address: Address, timeout: float) -> None:
        self._connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def get(self, path: str) -> Reply:
        return self._exchange("GET", path, None)

    def post(self, path: str, document: Mapping[str, Any]) -> Reply:
        return self._exchange("POST", path, json.dumps(document).encode())

    def cut(self) -> None:
        """End a request that another thread waits for: it gets a TransportError at once."""
        waiting = self._connection.sock
        if waiting is not None:
            with contextlib.suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)

    def _exchange(self, method: str, path: str, body: bytes | None) -> Reply:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            return Reply(answer.status, answer.read(_ANSWER_LIMIT))
        except TimeoutError as error:
            self._connection.close()
            raise TransportError("timed out") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            reason = getattr(error, "strerror", None) or str(error) or error.__class__.__name__
            raise TransportError(str(reason).lower()) from error


def get(address: Address, path: str, timeout: float = 10.0) -> Reply:
    """One GET on a connection of its own. TransportError when no answer came."""
    with Connection(address, timeout) as connection:
        return connection.get(path)


def first_known(address: Address, *paths: str, timeout: float = 30.0) -> Reply:
    """The answer of the first path that the server knows (its releases renamed some of them)."""
    for path in paths:
        reply = get(address, path, timeout)
        if reply.status != http.client.NOT_FOUND:
            return reply
    return reply


def server_facts(address: Address) -> dict[str, Any]:
    """What the server says of itself at its info endpoint; empty where it says nothing."""
    try:
        reply = first_known(address, "/server_info", "/get_server_info")
        document = reply.document() if reply.ok else {}
    except TransportError:
        return {}
    return document if isinstance(document, dict) else {}


def accept_length(facts: Mapping[str, Any]) -> float | None:
    """Mean accept length over the ranks that report one, since the server started.

    SGLang lists one internal state a DP rank, with `avg_spec_accept_length` once it has verified.
    """
    states = facts.get("internal_states")
    if not isinstance(states, list):
        return None
    found = [s.get("avg_spec_accept_length") for s in states if isinstance(s, dict)]
    numbers = [float(n) for n in found if isinstance(n, int | float) and n == n and n > 0]
    return sum(numbers) / len(numbers) if numbers else None


def flush_cache(address: Address) -> bool:
    """Have the server drop its prefix cache; whether it says that it did."""
    try:
        return get(address, "/flush_cache", timeout=60.0).ok
    except TransportError:
        return False


def served_model(address: Address) -> str:
    """The model's name as the server wants it in requests; `default` where it does not say."""
    try:
        reply = get(address, "/v1/models")
        listed = reply.document()["data"][0]["id"] if reply.ok else "default"
    except (TransportError, LookupError, TypeError):
        return "default"
    return str(listed)
