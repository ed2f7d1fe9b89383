"""Options of the server probe, for every command that launches servers."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poolbisect.cli.durations import Duration
from poolbisect.errors import UsageError

if TYPE_CHECKING:
    from poolbisect.probes.server.options import ServerOptions
    from poolbisect.scenario import Scenario

PREFIX = "server_"
_FILE = click.Path(path_type=Path)

_OPTIONS = (
    click.option(
        "--model",
        PREFIX + "model",
        metavar="M",
        help="Server probe: the model's folder or name; default: the scenario's.",
    ),
    click.option(
        "--server-command",
        PREFIX + "command",
        metavar="CMD",
        help="Server probe: the command that launches it, in place of python -m "
        "sglang.launch_server; with {port}, and {python}, {model}, {host}, {flags}, {tree}.",
    ),
    click.option(
        "--server-flags",
        PREFIX + "flags",
        multiple=True,
        metavar="FLAGS",
        help="Server probe: flags after the scenario's, as one text. May be given more than once.",
    ),
    click.option(
        "--server-python",
        PREFIX + "python",
        type=_FILE,
        metavar="PATH",
        help="Server probe: the interpreter; default: this one.",
    ),
    click.option(
        "--isolation",
        PREFIX + "isolation",
        type=click.Choice(["per-commit", "given"]),
        help="Server probe: per-commit (default) makes a virtual environment of what the commit "
        "declares to depend on, reused when equal; given takes the interpreter's packages.",
    ),
    click.option(
        "--pyproject",
        PREFIX + "pyproject",
        metavar="FILE",
        help="Server probe: the file in python/ that declares dependencies, such as "
        "pyproject_cpu.toml; default: pyproject.toml.",
    ),
    click.option(
        "--health-timeout",
        PREFIX + "health_timeout",
        type=Duration(),
        metavar="T",
        help="Server probe: how long a start may take; default: 30m.",
    ),
    click.option(
        "--stall-timeout",
        PREFIX + "stall_timeout",
        type=Duration(),
        metavar="T",
        help="Server probe: how long a start may write nothing to its log; default: 10m.",
    ),
    click.option(
        "--question-timeout",
        PREFIX + "question_timeout",
        type=Duration(),
        metavar="T",
        help="Server probe: how long no question may come back before the server hangs; "
        "default: 5m.",
    ),
    click.option(
        "--lease-timeout",
        PREFIX + "lease_timeout",
        type=Duration(),
        metavar="T",
        help="Server probe: how long to wait for GPUs that another probe holds; default: 1h.",
    ),
    click.option(
        "--port",
        PREFIX + "port",
        type=click.IntRange(1, 65535),
        help="Server probe: a fixed port; default: any free one.",
    ),
    click.option(
        "--gpus",
        PREFIX + "gpus",
        type=click.IntRange(min=1),
        help="Server probe: GPUs to lease; default: as many as the flags use.",
    ),
    click.option(
        "--eval",
        PREFIX + "evaluation",
        type=_FILE,
        metavar="FILE",
        help="Server probe: few-shot questions, one {question, answer} a line, as GSM8K has them; "
        "default: the scenario's problems, if they are shipped.",
    ),
    click.option(
        "--shots",
        PREFIX + "shots",
        type=click.IntRange(min=0),
        help="Server probe: how many lines of --eval are shown before each question; default: the "
        "scenario's, or 5.",
    ),
    click.option(
        "--concurrency",
        PREFIX + "concurrency",
        type=click.IntRange(min=1),
        help="Server probe: questions in flight; default: the scenario's, or all.",
    ),
    click.option(
        "--rounds",
        PREFIX + "rounds",
        type=click.IntRange(min=1),
        help="Server probe: how often `run` asks everything, the cache flushed in between.",
    ),
    click.option(
        "--eval-command",
        PREFIX + "eval_command",
        metavar="CMD",
        help="Server probe: an evaluation of your own, such as lm-eval, with {url}, {model} and "
        "{out}; its score is read from {out} or its output.",
    ),
    click.option(
        "--eval-asked",
        PREFIX + "asked",
        type=click.IntRange(min=1),
        metavar="N",
        help="Server probe: how many questions --eval-command asks.",
    ),
    click.option(
        "--rule",
        PREFIX + "rule",
        type=float,
        metavar="X",
        help="Server probe: the lowest good score, or with the symptom accept-length the lowest "
        "good accept length.",
    ),
)


def server_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets their values as one mapping, `server`."""

    @functools.wraps(function)
    def wrapped(*args: Any, **given: Any) -> Any:
        ours = {
            name.removeprefix(PREFIX): given.pop(name)
            for name in list(given)
            if name.startswith(PREFIX)
        }
        return function(*args, server=ours, **given)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def options_from(server: Mapping[str, Any], scenario: Scenario | None = None) -> ServerOptions:
    """The options as the probe takes them; the scenario says what the symptom is.

    Raises:
        UsageError: a command is not well quoted, or options contradict each other.
    """
    from poolbisect.probes.server.options import Isolation, ServerOptions

    chosen = {name: value for name, value in server.items() if value not in (None, ())}
    for name in ("command", "eval_command"):
        if name in chosen:
            chosen[name] = _words(chosen[name], name)
    if "flags" in chosen:
        chosen["flags"] = tuple(word for text in chosen["flags"] for word in _words(text, "flags"))
    if "isolation" in chosen:
        chosen["isolation"] = Isolation(chosen["isolation"])
    if scenario is not None:
        chosen["symptom"] = scenario.symptom.value
    return ServerOptions(**chosen)


def refuse_without_server(server: Mapping[str, Any], probe: str) -> None:
    """UsageError when an option of the server probe is given to another one."""
    if probe == "server":
        return
    for option in _OPTIONS:
        parameters = option(lambda: None).__click_params__  # type: ignore[attr-defined]
        (parameter,) = parameters
        if server.get(parameter.name.removeprefix(PREFIX)) not in (None, ()):
            raise UsageError(
                f"{parameter.opts[0]} is for --probe server, not for --probe {probe}; "
                "leave it out or change the probe"
            )


def _words(text: str, name: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        option = "--server-" + name if name in ("command", "flags") else "--eval-command"
        raise UsageError(f"{option} {text!r}: {str(error).lower()}; close the quotes") from error
