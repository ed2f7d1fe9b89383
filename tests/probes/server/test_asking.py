"""The client: concurrency within the limits of the host, and answers that are none."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from poolbisect.probes.server.asking import Asking, Sampling, Stopped
from poolbisect.probes.server.client import Address, accept_length
from poolbisect.probes.server.questions import Question

Handle = Callable[[int], tuple[int, bytes]]


@pytest.fixture
def listening() -> Iterator[Callable[[Handle], Address]]:
    """A server of the test's own: what it answers to its nth completion."""
    opened: list[ThreadingHTTPServer] = []

    def listen(handle: Handle) -> Address:
        count = iter(range(10**6))

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = handle(next(count))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        opened.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return Address("127.0.0.1", server.server_address[1])

    yield listen
    for server in opened:
        server.shutdown()
        server.server_close()


GOOD = b'{"choices": [{"text": "1", "finish_reason": "stop"}], "usage": {"completion_tokens": 3}}'


def ask(address: Address, questions: int = 6, **more: float) -> tuple[Asking, Stopped]:
    asked = [Question(number, f"{number}:", 1) for number in range(questions)]
    asking = Asking(address, asked, Sampling("m", 8), concurrency=3, question_timeout=20, retries=2)
    return asking, asking.run(lambda: True)


def test_every_question_comes_back_once(listening: Callable[[Handle], Address]) -> None:
    asking, stopped = ask(listening(lambda n: (200, GOOD)))
    assert stopped is Stopped.DONE
    assert sorted(asking.answered) == list(range(6))
    assert {(one.text, one.tokens, one.finish) for one in asking.answered.values()} == {
        ("1", 3, "stop")
    }


def test_a_failure_that_passes_is_asked_again(listening: Callable[[Handle], Address]) -> None:
    asking, _ = ask(listening(lambda n: (200, GOOD) if n >= 4 else (503, b"later")))
    assert all(one.text == "1" for one in asking.answered.values())


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (400, b'{"message": "too long"}', "HTTP 400"),
        (500, b"oops", "HTTP 500: oops"),
        (200, b"<html>", "the answer is not JSON"),
        (200, b'{"choices": []}', "the answer is no completion"),
        (200, b'[1, "x"]', "the answer is no completion"),
    ],
)
def test_what_is_no_completion_is_no_answer(
    listening: Callable[[Handle], Address], status: int, body: bytes, problem: str
) -> None:
    asking, stopped = ask(listening(lambda n: (status, body)), questions=2)
    assert stopped is Stopped.DONE
    assert [one.text for one in asking.answered.values()] == [None, None]
    assert all(problem in one.problem for one in asking.answered.values())


def test_nobody_there(listening: Callable[[Handle], Address]) -> None:
    asking, _ = ask(Address("127.0.0.1", 1), questions=1)
    assert "refused" in asking.answered[0].problem


@pytest.mark.parametrize(
    ("states", "length"),
    [
        ([{"avg_spec_accept_length": 3.0}, {"avg_spec_accept_length": 4.0}], 3.5),
        ([{"avg_spec_accept_length": 3.0}, {}], 3.0),
        ([{"avg_spec_accept_length": None}, {"avg_spec_accept_length": float("nan")}], None),
        ([{}], None),
        ("nonsense", None),
    ],
)
def test_accept_length_is_the_mean_of_the_ranks_that_have_one(
    states: object, length: float | None
) -> None:
    assert accept_length({"internal_states": states}) == length


def test_no_more_connections_than_files_may_be_open() -> None:
    code = (
        f"import resource, sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from poolbisect.probes.server.asking import connections_allowed as allowed\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (300, 1000))\n"
        "print(allowed(100), allowed(1319), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["100", "744", "1000"]
