"""Asking a server every question at bounded concurrency; what came back, or why nothing did."""

from __future__ import annotations

import contextlib
import queue
import resource
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from poolbisect.probes.server.client import Address, Connection, Reply, TransportError
from poolbisect.probes.server.questions import Question

_BACKOFF = 0.2
_LOOK = 0.25
_OTHER_FILES = 256
_REFUSED_FOR_NOW = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How each question is asked. `temperature` 0 is greedy."""

    model: str
    max_new_tokens: int
    stops: tuple[str, ...] = ()
    temperature: float = 0.0
    seed: int | None = None

    def body(self, prompt: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": self.max_new_tokens,
            "temperature": self.temperature,
        }
        if self.stops:
            body["stop"] = list(self.stops)
        if self.seed is not None:
            body["seed"] = self.seed
        return body


@dataclass(frozen=True, slots=True)
class Answered:
    """One question's way: `text` is None and `problem` says why where no answer came."""

    question: Question
    text: str | None
    problem: str = ""
    finish: str | None = None
    tokens: int = 0


class Stopped(StrEnum):
    """Why asking ended."""

    DONE = "done"
    DIED = "died"
    """The server's process ended."""
    HUNG = "hung"
    """No question came back for as long as one may take."""


class Asking:
    """One pass over questions. `answered` grows while it runs and stays valid when it is cut.

    A question is asked again, up to `retries` times, when its connection broke or the server
    refused it for the moment or failed; the others are answered meanwhile.
    """

    def __init__(
        self,
        address: Address,
        questions: Sequence[Question],
        sampling: Sampling,
        *,
        concurrency: int,
        question_timeout: float,
        retries: int = 2,
    ) -> None:
        self.answered: dict[int, Answered] = {}
        self._address = address
        self._sampling = sampling
        self._timeout = question_timeout
        self._retries = retries
        self._waiting: queue.SimpleQueue[Question] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Answered] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._open: set[Connection] = set()
        self._lock = threading.Lock()
        self._count = len(questions)
        self._workers = max(1, min(concurrency, self._count, connections_allowed(concurrency)))
        for question in questions:
            self._waiting.put(question)

    def run(self, alive: Callable[[], bool], watch: Callable[[int], None] | None = None) -> Stopped:
        """Ask everything; `watch` is called with the number of questions that are back.

        `alive` is asked now and then whether the server's process is there. On an interrupt the
        requests under way are cut, and the interrupt goes on.
        """
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(self._workers)]
        for worker in workers:
            worker.start()
        try:
            return self._collect(alive, watch)
        finally:
            self._cut()
            for worker in workers:
                worker.join(timeout=5.0)

    def _collect(self, alive: Callable[[], bool], watch: Callable[[int], None] | None) -> Stopped:
        latest = time.monotonic()
        while len(self.answered) < self._count:
            try:
                one = self._done.get(timeout=_LOOK)
            except queue.Empty:
                if not alive():
                    self._take_what_is_there()
                    return Stopped.DIED
                if time.monotonic() - latest > self._timeout:
                    return Stopped.HUNG
                continue
            self.answered[one.question.id] = one
            if one.text is not None:
                latest = time.monotonic()
            if watch is not None:
                watch(len(self.answered))
        return Stopped.DONE if alive() else Stopped.DIED

    def _take_what_is_there(self) -> None:
        while not self._done.empty():
            one = self._done.get()
            self.answered[one.question.id] = one

    def _cut(self) -> None:
        self._stop.set()
        with self._lock:
            for connection in self._open:
                connection.cut()

    def _work(self) -> None:
        # Twice the patience of the whole: the whole notices first, and says what it means.
        with Connection(self._address, 2 * self._timeout) as connection:
            with self._lock:
                self._open.add(connection)
            while not self._stop.is_set():
                try:
                    question = self._waiting.get_nowait()
                except queue.Empty:
                    break
                self._done.put(self._ask(connection, question))
            with self._lock:
                self._open.discard(connection)

    def _ask(self, connection: Connection, question: Question) -> Answered:
        problem = ""
        for attempt in range(self._retries + 1):
            if self._stop.wait(_BACKOFF * (2**attempt - 1)):
                break
            try:
                reply = connection.post("/v1/completions", self._sampling.body(question.prompt))
                if reply.ok:
                    return _read(question, reply)
                problem = f"HTTP {reply.status}: {reply.words()}"
                if reply.status < 500 and reply.status not in _REFUSED_FOR_NOW:
                    break
            except TransportError as error:
                problem = str(error)
        return Answered(question, None, problem or "not asked")


def connections_allowed(wanted: int) -> int:
    """How many connections this process may hold, its limit on open files raised as far as it may.

    1,319 in flight, as upstream asks them, are more than the usual limit of 1,024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - _OTHER_FILES))


def _read(question: Question, reply: Reply) -> Answered:
    """The text of a completion. TransportError when the answer is no completion."""
    document = reply.document()
    try:
        choice = document["choices"][0]
        text, finish = choice["text"], choice.get("finish_reason")
        tokens = (document.get("usage") or {}).get("completion_tokens")
    except (LookupError, TypeError, AttributeError) as error:
        raise TransportError(f"the answer is no completion: {reply.words()}") from error
    return Answered(
        question,
        text if isinstance(text, str) else "",
        finish=finish if isinstance(finish, str) else None,
        tokens=tokens if isinstance(tokens, int) else 0,
    )
