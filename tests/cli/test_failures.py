"""Full disks, closed pipes, wrong files and names that are no text end in a sentence."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import poolbisect
from poolbisect.cli import failures, main

# Found from any folder, installed or not.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(poolbisect.__file__).parents[1])}
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the real command in a shell's way: real pipes and devices."""

    def execute(*arguments: str | bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "poolbisect", *arguments]
        options: dict[str, Any] = {"cwd": tmp_path, "stderr": subprocess.PIPE} | more
        options["env"] = ENVIRONMENT
        return subprocess.run(command, check=False, **options)

    return execute


def sentence(stderr: bytes) -> str:
    """The one line on stderr."""
    (line,) = stderr.decode().splitlines()
    assert line.startswith("poolbisect: ")
    return line


@pytest.fixture
def made(run: Run, story: Any, tmp_path: Path) -> Path:
    """The folder of a bisect that has ended."""
    run(*bisect(story), stdout=subprocess.DEVNULL)
    (session,) = (tmp_path / "reports" / "bisect").iterdir()
    return session


def bisect(story: Any) -> tuple[str, ...]:
    ends = ("--good", story.commits["comment"], "--bad", story.commits["padding row"])
    return ("bisect", "--repo", str(story.folder), *ends, "--scenario", "ngram-canary")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("scenarios",), ("scenarios", "mimo-canary"), ("--help",)])
def test_a_full_disk_on_stdout(run: Run, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = run(*arguments, stdout=full)
    assert done.returncode == 3
    assert "No space left on device" in sentence(done.stderr)


@pytest.mark.parametrize("arguments", [("scenarios",), ("scenarios", "mimo-canary"), ("--help",)])
def test_a_reader_that_ended_is_no_finding_and_no_noise(
    run: Run, arguments: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run(*arguments, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_broken_pipe_elsewhere_is_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("poolbisect.cli.group.main", fail)
    monkeypatch.setattr(sys, "argv", ["poolbisect"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert "Broken pipe" in capsys.readouterr().err


def test_a_file_in_the_place_of_a_folder_and_the_reverse(
    run: Run, made: Path, story: Any, tmp_path: Path
) -> None:
    def refused(name: str, *arguments: str) -> int:
        done = run(*arguments, stdout=subprocess.DEVNULL)
        *_, last = done.stderr.decode().splitlines()
        assert name in last.replace("\n", "")
        assert last.startswith("poolbisect: ")
        assert b"Traceback" not in done.stderr
        return done.returncode

    (tmp_path / "taken").write_text("a file")
    assert refused("taken", *bisect(story), "--out", "taken") == 2
    (made / "attempts").rename(made / "kept attempts")
    (made / "attempts").write_text("a file")
    again = ("--forget", story.commits["padding row"])
    assert refused("attempts", "bisect", "--resume", str(made), *again) == 3
    (made / "attempts").unlink()
    (made / "result.json").unlink()
    (made / "result.json").mkdir()
    assert refused("result.json", "bisect", "--resume", str(made)) == 3
    (made / "journal.jsonl").rename(made / "kept")
    (made / "journal.jsonl").mkdir()
    for command in ("log", "--resume"):
        assert refused("journal.jsonl", "bisect", command, str(made)) in (2, 3)


def test_a_current_folder_that_is_gone(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        f"gone = pathlib.Path({str(tmp_path)!r}, 'gone'); gone.mkdir(); os.chdir(gone)\n"
        "gone.rmdir(); sys.argv = ['poolbisect', 'bisect', '--good', 'a', '--bad', 'b']\n"
        "from poolbisect.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode == 3
    assert "the current folder does not exist any more" in sentence(done.stderr)


def test_an_argument_that_is_not_utf_8_is_named(run: Run) -> None:
    done = run("timeline", "--repo", b"b\xffd \xc3\xbc", "--good", "a", "--bad", "b")
    assert done.returncode == 2
    assert "'b\\xffd ü' is not UTF-8" in sentence(done.stderr)


def test_neither_may_the_current_folder_be(run: Run, story: Any, tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"n\xf6")
    story.builder.git("clone", "-q", str(story.folder), str(tmp_path / "n"))
    os.rename(tmp_path / "n", folder)
    ends = ("--good", story.commits["comment"], "--bad", story.commits["padding row"])
    done = run("bisect", *ends, "--scenario", "ngram-canary", cwd=folder)
    assert done.returncode == 2
    assert "n\\xf6' is not UTF-8" in sentence(done.stderr)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(errno.ENOENT, "gone", b"a\xff"), "a\\xff: gone"),
        (OSError("pip is odd"), "cannot be written: pip is odd"),
    ],
)
def test_the_file_is_named_where_it_is_known(error: OSError, said: str) -> None:
    assert failures.sentence(error).endswith(said)
