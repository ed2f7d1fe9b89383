"""The options of `bisect --probe command`, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from poolbisect.cli.durations import Duration
from poolbisect.errors import UsageError
from poolbisect.probes.command.options import BadIf, CommandOptions

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--bad-if",
        type=click.Choice([each.value for each in BadIf]),
        default=BadIf.AUTO.value,
        show_default=True,
        help="What makes a commit bad, for --probe command. auto: its score if the first run "
        "states one, else its exit status (0 good, 1-124 bad, 125-127 not testable, from 128 "
        "crashed).",
    ),
    click.option(
        "--score-file",
        metavar="FILE",
        help="Where CMD writes its score, such as {attempt}/metrics.json; may be a glob. Without "
        "it the score is a line such as `Accuracy: 0.776` on standard output.",
    ),
    click.option("--score-key", metavar="KEY", help="Its place in JSON, as results.accuracy."),
    click.option(
        "--score-regex",
        metavar="REGEX",
        help="Its first group is the score; or groups named score, correct and asked.",
    ),
    click.option("--metric", metavar="M", help="Which metric, where the output has several."),
    click.option(
        "--scale", type=click.Choice(["1", "100"]), help="What the best score reads, if not said."
    ),
    click.option(
        "--asked",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many questions a score rests on, where the output does not say; with "
        "{questions}, how many there are in all.",
    ),
    click.option(
        "--threshold",
        type=float,
        metavar="T",
        help="The lowest good score, from 0 to 1; else scores are compared with the ends'.",
    ),
    click.option(
        "--flaky/--deterministic",
        "flaky",
        default=None,
        help="Whether CMD can come out either way at one commit; usual for scores, not for exit "
        "statuses.",
    ),
    click.option(
        "--timeout", type=Duration(), metavar="T", help="The most one run of CMD may take, as 10m."
    ),
    click.option(
        "--keep-build", is_flag=True, help="Leave ignored files between commits, for fast builds."
    ),
    click.option(
        "--infra-pattern",
        "infra_patterns",
        multiple=True,
        metavar="REGEX",
        help="In the log of a run without a result: the host failed, not the commit. Joins a "
        "built-in list. May be given more than once.",
    ),
    click.option(
        "--any-failure-counts",
        is_flag=True,
        help="Do not look for failures of the host in the log: connections lost, disks full.",
    ),
)
PARAMETERS = (
    *("bad_if", "score_file", "score_key", "score_regex", "metric", "scale", "asked"),
    *("threshold", "flaky", "timeout", "keep_build", "infra_patterns", "any_failure_counts"),
)
"""Names of the parameters, all of them fields of `CommandOptions`."""


def command_options(function: _Function) -> _Function:
    """Add the options to a click command, which gets `PARAMETERS` as keywords."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


def options_of(given: Mapping[str, Any]) -> CommandOptions:
    """The options among a command's keywords. UsageError where they contradict each other."""
    values = {name: given[name] for name in PARAMETERS}
    scale = values.pop("scale")
    return CommandOptions(
        **{**values, "bad_if": BadIf(values["bad_if"])},
        scale=None if scale is None else int(scale),
    )


def refuse_options(context: click.Context, probe: str) -> None:
    """UsageError if one of the options was given although `probe` is another one."""
    for name in PARAMETERS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            parameter = next(p for p in context.command.params if p.name == name)
            raise UsageError(
                f"{parameter.opts[0]} is for --probe command; leave it out with --probe {probe}"
            )
