"""What a user says of a command: how its runs are judged, where its score is, what limits it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import msgspec

from poolbisect.errors import UsageError


class BadIf(StrEnum):
    """What makes a commit bad."""

    AUTO = "auto"
    """Its score if the first run prints or writes one, else its exit status."""
    EXIT = "exit"
    SCORE = "score"
    CRASH = "crash"


_ABOUT_SCORES = (
    *("score_file", "score_key", "score_regex", "metric", "scale", "asked", "threshold"),
)


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """`score_file`: where the command writes its score, with placeholders, relative to where it
    runs, perhaps a glob; standard output without it. `score_key`: the score's place in a JSON
    object, as in `results.accuracy`. `score_regex`: its first group, or those named `score`,
    `correct` and `asked`. `metric`, `scale`: as in `compare`. `asked`: questions of one run.
    `threshold`: the lowest good score. `flaky`: whether a run of one commit may come out either
    way, None for what is usual: exit status no, scores yes. `timeout`: seconds of one run.
    `keep_build`: leave ignored files in the work tree between commits. `infra_patterns` join the
    built-in ones, unless `any_failure_counts`, which takes every failure for the command's own.
    """

    bad_if: BadIf = BadIf.AUTO
    score_file: str | None = None
    score_key: str | None = None
    score_regex: str | None = None
    metric: str | None = None
    scale: int | None = None
    asked: int | None = None
    threshold: float | None = None
    flaky: bool | None = None
    timeout: float | None = None
    keep_build: bool = False
    infra_patterns: tuple[str, ...] = ()
    any_failure_counts: bool = False

    def __post_init__(self) -> None:
        if self.bad_if in (BadIf.EXIT, BadIf.CRASH):
            for name in _ABOUT_SCORES:
                if getattr(self, name) is not None:
                    raise UsageError(
                        f"{option(name)} is about a score, which --bad-if {self.bad_if} does not "
                        "look at; leave one of the two out."
                    )
        if self.score_key is not None and self.score_regex is not None:
            raise UsageError("--score-key and --score-regex both say where the score is; give one.")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise UsageError(
                f"--threshold {self.threshold:g} is not between 0 and 1; scores on a scale of 0 "
                "to 100 are divided by 100, with --scale 100."
            )
        for name, pattern in [
            *(("infra_pattern", pattern) for pattern in self.infra_patterns),
            *((("score_regex", self.score_regex),) if self.score_regex is not None else ()),
        ]:
            try:
                compiled = re.compile(pattern)
            except re.error as error:
                raise UsageError(
                    f"{option(name)} {pattern!r} is no regular expression: {error}."
                ) from error
            if name == "score_regex" and not compiled.groups:
                raise UsageError(
                    f"--score-regex {pattern!r} has no group; put the number in parentheses, as "
                    r"in 'acc=([\d.]+)'."
                )

    @property
    def wants_score(self) -> bool:
        """Whether the user said that there is a score."""
        said = any(getattr(self, name) is not None for name in _ABOUT_SCORES)
        return said or self.bad_if is BadIf.SCORE

    @property
    def chooses_score(self) -> bool:
        """Whether the user said where in the output or the file the score is."""
        return self.score_key is not None or self.score_regex is not None


def option(name: str) -> str:
    """The command-line option of a field; one that may be given more than once is singular."""
    return "--" + name.removesuffix("s" * (name == "infra_patterns")).replace("_", "-")


def stored(command: Sequence[str], options: CommandOptions) -> dict[str, Any]:
    """Both, JSON-ready, as a session keeps them; of the options what differs from the defaults."""
    default = CommandOptions()
    chosen = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if getattr(options, field.name) != getattr(default, field.name)
    }
    if options.infra_patterns:
        chosen["infra_patterns"] = list(options.infra_patterns)
    found: dict[str, Any] = msgspec.to_builtins({"command": list(command), **chosen})
    return found


def restored(kept: Mapping[str, Any]) -> tuple[tuple[str, ...], CommandOptions]:
    """What `stored` was given. UsageError for anything else."""
    rest = {name: value for name, value in kept.items() if name != "command"}
    try:
        command = msgspec.convert(kept.get("command", []), tuple[str, ...])
        options = msgspec.convert(rest, CommandOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"a command probe's options cannot be read: {error}.") from error
    if unknown := sorted(rest.keys() - {field.name for field in fields(CommandOptions)}):
        raise UsageError(f"a command probe has no option {unknown[0]!r}.")
    return command, options
