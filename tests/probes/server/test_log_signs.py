"""What logs tell: the mechanism before what follows from it, and the line it stands on."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.probes.server.endings import (
    BEFORE_HEALTH,
    DURING_THE_RUN,
    ServerEnd,
    of_a_sign,
    of_an_exit,
)
from poolbisect.probes.server.log_signs import Sign, find_sign, last_words, mentions_nan

CASCADE = """\
[2026-05-03 08:00:00 DP0 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "scheduler.py", line 10, in run
    self.pool[index] = 1
IndexError: index 65 is out of bounds for dimension 0 with size 65

[2026-05-03 08:00:01] Received sigquit from a child process. It usually means the child failed.
"""


@pytest.mark.parametrize(
    ("log", "sign", "line"),
    [
        (CASCADE, Sign.INDEX, "IndexError: index 65 is out of bounds"),
        (
            "RuntimeError: CUDA error: an illegal memory access was encountered\nIndexError: x\n",
            Sign.ILLEGAL_ACCESS,
            "RuntimeError: CUDA error",
        ),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", Sign.OUT_OF_MEMORY, "torch.cuda"),
        ("RuntimeError: Not enough memory. Please try", Sign.OUT_OF_MEMORY, "RuntimeError"),
        ("[TP0] ModuleNotFoundError: No module named 'x'", Sign.IMPORT, "[TP0] Module"),
        ("/usr/bin/python: No module named sglang.launch_server", Sign.IMPORT, "/usr/bin/python"),
        ("ImportError: /a/b.so: undefined symbol: _ZN3c10", Sign.IMPORT, "ImportError"),
        ("serve.py: error: unrecognized arguments: --x", Sign.UNKNOWN_FLAG, "serve.py"),
        ("[Errno 98] Address already in use", Sign.PORT, "[Errno 98]"),
        ("ValueError: bad\nReceived sigquit from a child process.", Sign.ERROR, "ValueError: bad"),
        ("Received sigquit from a child process.", Sign.CHILD, "Received"),
        ("a.b.SomeError: what\nat the end\n", Sign.ERROR, "a.b.SomeError: what"),
    ],
)
def test_the_telling_line(log: str, sign: Sign, line: str) -> None:
    found = find_sign(log)
    assert found is not None
    assert found.sign is sign
    assert found.line.startswith(line)


@pytest.mark.parametrize(
    "log",
    [
        "[2026-05-01 10:00:00] Ignore import error when loading sglang.x: No module named 'y'",
        "Ignore import error when loading sglang.x: /a/b.so: undefined symbol: _ZN3c10",
        "Loading weights: No module named in the index",
        "INFO: 40 errors so far, nanoseconds in use",
        "loading the finance model",
        "",
    ],
)
def test_harmless_lines_say_nothing(log: str) -> None:
    assert find_sign(log) is None
    assert of_a_sign(log, when=BEFORE_HEALTH) is None


def test_a_server_that_lives_is_given_up_only_for_what_none_survives() -> None:
    survived = "IndexError: a request asked for the impossible\nModuleNotFoundError: no x\n"
    assert find_sign(survived) is not None
    assert of_a_sign(survived, when=DURING_THE_RUN) is None
    lost = of_a_sign(CASCADE, when=DURING_THE_RUN)
    assert lost is not None
    assert (lost.end, lost.line) == (
        ServerEnd.CRASH,
        "IndexError: index 65 is out of bounds for dimension 0 with size 65",
    )


def test_a_launcher_that_kills_its_own_tree_crashed() -> None:
    found = of_an_exit(-signal.SIGKILL, CASCADE, when=DURING_THE_RUN)
    assert found.end is ServerEnd.CRASH
    assert "SIGKILL" in found.sentence


@pytest.mark.parametrize(
    ("status", "when", "end"),
    [
        (-signal.SIGKILL, DURING_THE_RUN, ServerEnd.KILLED),
        (-signal.SIGTERM, DURING_THE_RUN, ServerEnd.KILLED),
        (-signal.SIGSEGV, DURING_THE_RUN, ServerEnd.CRASH),
        (-signal.SIGABRT, BEFORE_HEALTH, ServerEnd.CRASH),
        (1, BEFORE_HEALTH, ServerEnd.START),
        (0, BEFORE_HEALTH, ServerEnd.START),
        (0, DURING_THE_RUN, ServerEnd.CRASH),
        (-250, DURING_THE_RUN, ServerEnd.KILLED),
    ],
)
def test_a_log_that_says_nothing_leaves_the_status(status: int, when: str, end: ServerEnd) -> None:
    assert of_an_exit(status, "all well\n", when=when).end is end


def test_nan_is_found_where_it_is_meant() -> None:
    assert mentions_nan("x\n[TP1] Detected errors during sampling! NaN in the logits.\n")
    assert mentions_nan("nancy in finance, 3 nanoseconds") is None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_any_log_is_read(log: str) -> None:
    found = find_sign(log)
    words = last_words(log)
    for line in (found.line if found else None, words):
        assert line is None or (line.isprintable() and len(line) <= 300)
