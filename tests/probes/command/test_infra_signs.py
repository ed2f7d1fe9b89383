"""A lost connection or a full disk in the last lines of a log is the host's, a crash is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolbisect.probes.command.infra_signs import last_line, sign_of_infra


def sign(folder: Path, text: str, *more: str) -> str | None:
    (folder / "log").write_text(text, encoding="utf-8")
    return sign_of_infra(folder / "log", more)


@pytest.mark.parametrize(
    "line",
    [
        "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, "
        "'Connection reset by peer'))",
        "curl: (7) Failed to connect to localhost port 30000: Connection refused",
        "OSError: [Errno 28] No space left on device",
        "urllib3: Temporary failure in name resolution",
        "HTTPError: 503 Service Unavailable",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 139.72 GiB of which 1.02 GiB is free. Process 4711 has 120.00 GiB in use.",
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    ],
)
def test_the_hosts_failures(tmp_path: Path, line: str) -> None:
    assert sign(tmp_path, f"starting\n{line}\nTraceback (most recent call last):\n") == line[:200]


@pytest.mark.parametrize(
    "text",
    [
        "AssertionError: 0.72 is not above 0.75\n",
        "CUDA out of memory. Tried to allocate 200 GiB\n",  # of this command's own making
        "",
        "Connection reset by peer, retrying\n" + "solved a question\n" * 60 + "score too low\n",
        "CUDA error: an illegal memory access was encountered\nConnection refused\n",
        "Segmentation fault (core dumped)\nConnection reset by peer\n",
    ],
)
def test_the_commands_own(tmp_path: Path, text: str) -> None:
    assert sign(tmp_path, text) is None


def test_more_patterns_can_be_given(tmp_path: Path) -> None:
    text = "licence server is down\nSegmentation fault\n"
    assert sign(tmp_path, text) is None
    assert sign(tmp_path, text, "licence .* down") == "licence server is down"


def test_the_last_line_that_says_something(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\n10%\r20% \xff\n \n\n")
    assert last_line(tmp_path / "log") == "20% \ufffd"
