"""The command line. Commands are imported when they are called, so `--help` starts at once."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from poolbisect.cli import failures
from poolbisect.errors import PoolbisectError

_COMMANDS = {
    "baseline": "List the recorded baselines and their gates' health, or record one.",
    "bisect": "Find the commit or release that broke it, or that mended it.",
    "compare": "Compare two runs or score files: did accuracy drop?",
    "doctor": "Say what works on this machine, what is missing and how to get it.",
    "export-model": "Write a miniature's base weights as a Hugging Face folder.",
    "nightly": "Run the configured scenarios, compare with the past, report what is new.",
    "report": "Render the reports of an earlier run again.",
    "run": "Run a canary scenario on two or more states of the pools and compare them.",
    "scenarios": "List the scenarios, or show one.",
    "timeline": "Say when each buffer's contract was broken and mended in a range of history.",
}


class _Commands(click.Group):
    """Loads `poolbisect.cli.<name>` on demand and turns expected errors into one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"poolbisect.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="poolbisect")
def group() -> None:
    """Regression forensics for LLM serving: which commit, which buffer, which slot, how sure.

    Exit codes: 0 nothing wrong, 1 regression or finding, 2 usage, 3 infrastructure,
    4 inconclusive, 130 interrupted, 141 nobody reads what is printed.
    """


def main() -> None:
    """Entry point of the `poolbisect` command."""
    try:
        failures.show_what_can_be_shown(sys.stdout, sys.stderr)
        failures.refuse_unreadable(sys.argv[1:])
        code = group.main(standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except PoolbisectError as error:
        _fail(str(error), error.exit_code)
    except UnicodeEncodeError as error:
        _fail(failures.not_utf8(str(error.object)), 2)
    except (OSError, SystemExit) as error:
        _end(error)
    sys.exit(code if isinstance(code, int) else 0)


def _end(error: OSError | SystemExit) -> NoReturn:
    """End after a file or a stream failed."""
    if failures.nobody_reads(error):
        failures.let_go(sys.stdout, sys.stderr)
        sys.exit(failures.BROKEN_PIPE)
    if isinstance(error, SystemExit):
        raise error
    message = failures.sentence(error)
    failures.let_go(sys.stdout)
    _fail(message, 3)


def _fail(message: str, code: int) -> NoReturn:
    try:
        click.echo(f"poolbisect: {message}", err=True)
    except OSError:  # nobody can be told
        failures.let_go(sys.stderr)
    sys.exit(code)
