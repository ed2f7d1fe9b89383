"""Each way in which a server fails ends in its own class, in words, and leaves nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from poolbisect.bisection.outcome import Ending
from poolbisect.measurement import Ended, Measurement, Outcome
from poolbisect.probes.server.endings import Finding, ServerEnd

Serve = Callable[..., Measurement]


def end_of(measurement: Measurement) -> ServerEnd:
    return ServerEnd(measurement.provenance["ending"])


@pytest.mark.parametrize(
    ("fault", "end", "ended", "telling"),
    [
        (
            "import",
            ServerEnd.IMPORT,
            Ended.BUILD_FAILED,
            "its code does not import (exit status 1): ModuleNotFoundError: No module named",
        ),
        (
            "start",
            ServerEnd.START,
            Ended.BUILD_FAILED,
            "before it was healthy (exit status 1): RuntimeError: the configuration makes no",
        ),
        (
            "index-at-start",
            ServerEnd.CRASH,
            Ended.CRASHED,
            "before it was healthy (exit status 1): IndexError: index 32 is out of bounds",
        ),
        (
            "oom",
            ServerEnd.OUT_OF_MEMORY,
            Ended.INFRA,
            "out of memory before it was healthy (exit status 1): torch.OutOfMemoryError: CUDA",
        ),
    ],
)
def test_it_ends_before_it_is_healthy(
    serve: Serve, fault: str, end: ServerEnd, ended: Ended, telling: str
) -> None:
    found = serve(fault)
    assert (end_of(found), found.ended) == (end, ended)
    assert telling in found.detail
    assert found.accuracy is None


@pytest.mark.parametrize(
    ("fault", "end", "ended", "telling"),
    [
        ("die", ServerEnd.CRASH, Ended.CRASHED, "index 65 is out of bounds"),
        ("illegal", ServerEnd.CRASH, Ended.CRASHED, "illegal memory access was encountered"),
        ("assert", ServerEnd.CRASH, Ended.CRASHED, "device-side assert triggered"),
        ("nan-crash", ServerEnd.CRASH, Ended.CRASHED, "probability tensor contains"),
        ("segv", ServerEnd.CRASH, Ended.CRASHED, "SIGSEGV"),
        ("killed", ServerEnd.KILLED, Ended.INFRA, "ended from outside"),
    ],
)
def test_it_dies_in_mid_run(
    serve: Serve, fault: str, end: ServerEnd, ended: Ended, telling: str
) -> None:
    found = serve(fault)
    assert (end_of(found), found.ended) == (end, ended)
    assert telling in found.detail
    assert "of 30 questions answered" in found.detail
    assert 0 < found.answered < 30
    assert found.accuracy is None


def test_a_slow_start_is_waited_for(serve: Serve) -> None:
    found = serve("", "--delay", "1")
    assert (found.ended, found.accuracy) == (Ended.MEASURED, 1.0)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("unhealthy", "not healthy after 1.5 seconds: Uvicorn running"),
        ("silent", "not healthy after 1.5 seconds"),
    ],
)
def test_it_never_gets_healthy(serve: Serve, fault: str, words: str) -> None:
    found = serve(fault, health_timeout=1.5)
    assert (end_of(found), found.ended) == (ServerEnd.HEALTH_TIMEOUT, Ended.TIMED_OUT)
    assert words in found.detail


def test_a_start_that_makes_no_progress_is_given_up_early(serve: Serve) -> None:
    found = serve("unhealthy", stall_timeout=1)
    assert found.ended is Ended.TIMED_OUT
    assert "wrote nothing to its log for 1 seconds" in found.detail


def test_a_launcher_that_outlives_its_crashed_child_is_not_waited_for(serve: Serve) -> None:
    found = serve("parent-waits", stall_timeout=1)
    assert (end_of(found), found.ended) == (ServerEnd.CRASH, Ended.CRASHED)
    assert "illegal memory access" in found.detail


def test_a_hang_is_no_crash_and_no_score(serve: Serve) -> None:
    found = serve("hang", question_timeout=1.5)
    assert (end_of(found), found.ended) == (ServerEnd.HANG, Ended.TIMED_OUT)
    assert "no other for 1.5 seconds" in found.detail
    assert found.answered == 10


@pytest.mark.parametrize("fault", ["errors", "drop"])
def test_b14_lost_answers_are_no_wrong_answers(serve: Serve, fault: str) -> None:
    """Case B14: 40 of 200 lost to the connection: excluded, infra, never 0."""
    found = serve(fault, questions=200, concurrency=64)
    assert (end_of(found), found.ended) == (ServerEnd.TRANSPORT, Ended.INFRA)
    assert "40 of 200 questions were not answered" in found.detail
    assert found.accuracy is None
    assert (found.correct, found.answered) == (160, 160)
    lost = [answer for answer in found.answers if answer.outcome is Outcome.UNANSWERED]
    assert len(lost) == 40


def test_nan_that_still_answers_is_a_score_with_the_reason(serve: Serve) -> None:
    found = serve("nan")
    assert (found.ended, found.accuracy) == (Ended.MEASURED, 0.0)
    assert {answer.outcome for answer in found.answers} == {Outcome.INVALID}
    assert "NaN in the logits" in found.detail


def test_a_score_that_drifts_while_the_server_runs_is_said(serve: Serve) -> None:
    found = serve("drift", questions=80, rounds=3)
    rounds = found.provenance["rounds"]
    assert rounds[0]["correct"] > rounds[1]["correct"] > rounds[2]["correct"]
    assert all(one["flushed"] for one in rounds)
    assert "drifts while the server runs" in found.detail
    assert "drifts" not in serve("", questions=80, rounds=3).detail


def test_an_unknown_flag_is_not_the_codes_fault(serve: Serve) -> None:
    found = serve("", "--no-such-flag")
    assert (end_of(found), found.ended) == (ServerEnd.UNKNOWN_FLAG, Ended.NOT_APPLICABLE)
    assert "--no-such-flag" in found.detail


def test_leaked_children_are_ended(
    serve: Serve, tmp_path: Path, detached_processes: Callable[[Path], dict[int, bool]]
) -> None:
    found = serve("leak")
    assert found.ended is Ended.MEASURED
    detached = detached_processes(tmp_path / "run" / "server.log")
    assert list(detached.values()) == [False, False]


def test_a_port_held_by_a_leaked_child_is_freed(
    serve: Serve, tmp_path: Path, detached_processes: Callable[[Path], dict[int, bool]]
) -> None:
    found = serve("hold-port")
    assert list(detached_processes(tmp_path / "run" / "server.log").values()) == [False]
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", found.provenance["port"]))
    assert found.detail == ""


def test_a_port_that_somebody_else_holds_is_named(serve: Serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = serve("", port=port)
    assert (end_of(found), found.ended) == (ServerEnd.PORT, Ended.INFRA)
    assert f"port {port} is taken by process {psutil.Process().pid}" in found.detail


def test_a_command_that_does_not_exist(serve: Serve) -> None:
    found = serve("", command=("no-such-program", "{port}"))
    assert (end_of(found), found.ended) == (ServerEnd.START, Ended.BUILD_FAILED)
    assert "does not start" in found.detail


def test_what_ran_is_proved(serve: Serve) -> None:
    found = serve("", "--accept-length", "3.25")
    proof = found.provenance
    assert "--accept-length 3.25" in " ".join(proof["command"])
    assert str(proof["port"]) in proof["command"]
    assert proof["server_version"] == "0.0.stand-in"
    assert proof["versions"]["torch"]
    assert proof["executable"]
    assert found.accept_length == 3.25


def test_accept_length_of_a_release_with_the_older_endpoint(serve: Serve) -> None:
    assert serve("", "--old", "--accept-length", "2.5").accept_length == 2.5


@pytest.mark.parametrize("end", ServerEnd)
def test_only_what_the_code_did_can_count_against_it(end: ServerEnd) -> None:
    finding = Finding(end)
    measured = end is ServerEnd.MEASURED
    assert (finding.ending is Ending.MEASURED) == measured
    assert (finding.ended is Ended.MEASURED) == measured
    assert (finding.ending is Ending.CRASHED) == (end is ServerEnd.CRASH)
    assert (finding.ended is Ended.CRASHED) == (end is ServerEnd.CRASH)
