"""A session's decisions as commands that can be typed again."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence

from poolbisect.bisection.journal import Record
from poolbisect.bisection.lines import Ended, Forget, Line, Resume, Skip, Suspect
from poolbisect.bisection.outcome import Observation


def summary(seen: Observation) -> str:
    """A few words: `good`, `155/200`, `build_failed`."""
    if seen.verdict is not None:
        return str(seen.verdict)
    return f"{seen.correct}/{seen.asked}" if seen.asked else str(seen.ending)


def _out(command: Sequence[str]) -> tuple[str, ...]:
    """Where the session's folder lies, if the start said so: `--resume` looks there."""
    for word, following in itertools.pairwise((*command, "")):
        if word == "--":
            break
        if word == "--out":
            return word, following
        if word.startswith("--out="):
            return (word,)
    return ()


def replay_commands(record: Record) -> list[str]:
    """Shell lines: the start, then each decision; what probes saw stands between as comments.

    Decisions before the first probe and the first resumption are the start's own options, or what
    it decides by itself when it is typed again.
    """
    header = record.header
    lines = [
        shlex.join(("poolbisect", *header.command)),
        f"# {header.commits} positions, from {header.good} to {header.bad}",
    ]
    again = ("poolbisect", "bisect", "--resume", *_out(header.command))
    for line in itertools.dropwhile(_is_decision, record.lines):
        match line:
            case Ended():
                lines.append(f"# {line.name}: {summary(line.observation)}")
            case Skip(names=(first, last)):
                # A range is without its older end, whatever kind of history it is of.
                span = () if first == last else ("--skip", f"{first}..{last}")
                lines.append(shlex.join((*again, "--skip", first, *span)))
            case Forget():
                lines.append(shlex.join((*again, "--forget", line.name)))
            case Suspect():
                lines.append(shlex.join((*again, "--suspect", line.name)))
            case Resume():
                lines.append("# resumed")
            case _:
                pass
    return lines


def _is_decision(line: Line) -> bool:
    return isinstance(line, Skip | Forget | Suspect)
