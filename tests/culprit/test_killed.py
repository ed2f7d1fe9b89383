"""Kill -9 at random moments: nothing is lost but the probe in flight, nothing of the user changes.

The 50 bisects are forked from one process that has everything imported, so that the moments fall
into the work and not into the start of Python.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .reading import write_line

KILLS = 50


def fingerprint(folder: Path) -> str:
    seen = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        seen.update(f"{path.relative_to(folder)} {path.lstat().st_mode}".encode())
        if path.is_file():
            seen.update(path.read_bytes())
    return seen.hexdigest()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_fifty_killed_bisects_resume_to_the_same_culprit(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 37 + ["bad"] * 27)
    builder.write("dirty.txt", "not committed")
    before = fingerprint(builder.folder)
    package = Path(__file__).parents[2]
    driver = Path(__file__).with_name("killing.py")
    out = tmp_path / "sessions"
    ends = (line[0], line[-1])
    done = subprocess.run(
        [sys.executable, str(driver), str(builder.folder), *ends, str(out), str(KILLS), "5"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [text.split() for text in done.stdout.splitlines()]
    assert [culprit for culprit, _ in answers] == [line[37]] * KILLS
    assert sum(int(killed) for _, killed in answers) >= KILLS / 3, "hardly any was killed in time"
    assert fingerprint(builder.folder) == before
