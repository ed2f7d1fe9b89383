"""From what the user typed to what runs at one commit: placeholders, environment, missing files."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poolbisect.errors import UsageError

_PLACEHOLDER = re.compile(r"\{(commit|release|attempt|run_id|questions|offset|tree)\}")
_INTERPRETER = re.compile(r"(?:python|pypy|bash|sh|zsh|dash|perl|ruby|node)[\d.]*")
# Where git's own work tree is: inside `git bisect run` or a hook they lead to the user's.
_GIT_PLACES = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR"
    r"|NAMESPACE|PREFIX|CEILING_DIRECTORIES)"
)


@dataclass(frozen=True, slots=True)
class Place:
    """One run: of what, where, and which questions it is to ask."""

    commit: str | None
    release: str | None
    tree: Path
    attempt: Path
    run_id: str
    questions: int
    offset: int

    @property
    def values(self) -> dict[str, str]:
        """Placeholder to text; those of the other kind of history are missing."""
        found = {
            "attempt": str(self.attempt),
            "run_id": self.run_id,
            "questions": str(self.questions),
            "offset": str(self.offset),
            "tree": str(self.tree),
        }
        if self.commit is not None:
            found["commit"] = self.commit
        if self.release is not None:
            found["release"] = self.release
        return found


def used(texts: Sequence[str]) -> frozenset[str]:
    """Names of the placeholders in texts; other braces are no placeholders."""
    return frozenset(match[1] for text in texts for match in _PLACEHOLDER.finditer(text))


def fill(text: str, place: Place, escape: Callable[[str], str] = str) -> str:
    """The text with its placeholders filled, `escape` applied to each value.

    Raises:
        UsageError: {commit} where releases are searched, or the other way round.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in place.values:
            other = "release" if match[1] == "commit" else "commit"
            raise UsageError(
                f"{{{match[1]}}} in {text!r} has no meaning here: {other}s are searched; "
                f"use {{{other}}}."
            )
        return escape(place.values[match[1]])

    return _PLACEHOLDER.sub(value, text)


def environment(place: Place) -> dict[str, str]:
    """The user's environment, not leading git elsewhere, and what the run may want to know."""
    kept = {name: value for name, value in os.environ.items() if not _GIT_PLACES.fullmatch(name)}
    ours = {
        "POOLBISECT_ATTEMPT_DIR": str(place.attempt),
        "POOLBISECT_RUN_ID": place.run_id,
        "POOLBISECT_QUESTIONS": str(place.questions),
        "POOLBISECT_OFFSET": str(place.offset),
        "PWD": str(place.tree),
    }
    if place.commit is not None:
        ours["POOLBISECT_COMMIT"] = place.commit
    if place.release is not None:
        ours["POOLBISECT_RELEASE"] = place.release
    return kept | ours


def check_startable(argv: Sequence[str], tree: Path, started_in: Path) -> None:
    """UsageError where a command cannot start at any commit, as far as can be told without it.

    That is a program that is not on PATH, or a script that lies where the user started and not in
    the commit, which is what `git bisect run` would find and a work tree of its own does not hold.
    """
    program = argv[0]
    if not program:
        raise UsageError("the command after -- is empty; give a program and its arguments.")
    if os.sep not in program:
        if shutil.which(program) is None:
            here = f"; there is one in {started_in}: give its full path" * _is_file(
                started_in / program
            )
            raise UsageError(f"the command {program!r} is not on PATH{here}.")
    elif os.path.isabs(program):
        if not (os.path.isfile(program) and os.access(program, os.X_OK)):
            raise UsageError(f"the command {program} is not a file that can be executed.")
    else:
        _refuse_outside(program, tree, started_in)
    if _INTERPRETER.fullmatch(os.path.basename(program)):
        script = next((word for word in argv[1:] if not word.startswith("-")), None)
        if script is not None and "-c" not in argv and "-m" not in argv:
            _refuse_outside(script, tree, started_in)


def _refuse_outside(name: str, tree: Path, started_in: Path) -> None:
    if not (tree / name).exists() and _is_file(started_in / name):
        raise UsageError(
            f"{name} is not in the commit, which is checked out elsewhere, but in {started_in}; "
            f"give its full path, {started_in / name}."
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def shown(argv: Sequence[str], values: Mapping[str, str]) -> dict[str, object]:
    """What ran, for the report."""
    return {"command": list(argv), **values}
