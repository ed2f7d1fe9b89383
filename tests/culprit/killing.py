"""Run as a program: a bisect that is killed with SIGKILL at random moments, and resumed each time.

Arguments: repository, good, bad, folder, number of kills, seed. Prints the culprit each of the
bisects ends with, one a line, and how often it was killed before that.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from reading import bisect, named  # noqa: E402


def go_on(repository: str, good: str, bad: str, out: Path) -> None:
    """Start or resume in a child of our own; its exit is the answer's."""
    found = bisect(Path(repository), good, bad, out)
    (out / "culprit.txt").write_text(named(found) or "none")


def ended_within(child: int, seconds: float) -> tuple[int, int]:
    """Process id and status of a child that has ended, (0, 0) if it goes on."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return done, status
        time.sleep(0.001)
    return 0, 0


def main() -> None:
    repository, good, bad, folder, kills, seed = sys.argv[1:]
    chance = random.Random(int(seed))
    clock = time.monotonic()
    go_on(repository, good, bad, Path(folder) / "whole")
    whole = time.monotonic() - clock
    for trial in range(int(kills)):
        out = Path(folder) / str(trial)
        killed, wait = 0, chance.uniform(0.0, whole)
        while True:
            child = os.fork()
            if child == 0:
                go_on(repository, good, bad, out)
                os._exit(0)
            done, status = ended_within(child, wait)
            if not done and killed == 0:
                os.kill(child, signal.SIGKILL)
                killed += 1
                os.waitpid(child, 0)
                wait = 60.0
                continue
            if not done:
                raise SystemExit("a bisect did not end")
            if status:
                raise SystemExit(f"a bisect ended with status {status}")
            break
        print((out / "culprit.txt").read_text(), killed, flush=True)


if __name__ == "__main__":
    main()
