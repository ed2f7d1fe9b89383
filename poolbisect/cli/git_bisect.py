"""`poolbisect run --git-bisect`: exit codes as `git bisect run` reads them.

    ours                             what git is told
    0    nothing wrong               0     good
    1    regression                  1     bad
    4    inconclusive, untestable    125   skip this commit
    2    usage                       129   stop: every commit would look bad
    3    infrastructure              129   stop: nothing was learnt about the commit
    130  interrupted                 130   stop

git takes 1 to 127 but 125 for bad, so without this an untestable commit, a mistyped option and a
full disk would all be blamed on the commit. An error of ours (a traceback, which Python ends with
1) stops as well.
"""

from __future__ import annotations

import traceback
from typing import Any, NoReturn

import click

from poolbisect.errors import PoolbisectError

OPTION = "--git-bisect"
SKIP, STOP = 125, 129
_INTERRUPTED = 130
_CODES = {0: 0, 1: 1, 4: SKIP, _INTERRUPTED: _INTERRUPTED}


def for_git_bisect(code: int) -> int:
    """What `git bisect run` is to see instead of an exit code of `poolbisect run`."""
    return _CODES.get(code, STOP)


class GitBisectCommand(click.Command):
    """A command that with `--git-bisect` ends as git expects, whatever happens in it.

    The option is the command's own and is not handed to its function.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.params.append(
            click.Option(
                [OPTION],
                is_flag=True,
                expose_value=False,
                help="Exit as `git bisect run` expects: 0 good, 1 bad, 125 skip (inconclusive or "
                "untestable), 129 stop (usage or infrastructure).",
            )
        )

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        wanted = OPTION in args
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            if wanted:
                error.show()
                _stop(parent, STOP)
            raise
        context.meta[OPTION] = wanted
        return context

    def invoke(self, ctx: click.Context) -> Any:
        if not ctx.meta.get(OPTION):
            return super().invoke(ctx)
        try:
            code = super().invoke(ctx)
        except (click.exceptions.Exit, click.exceptions.Abort, KeyboardInterrupt):
            raise
        except click.ClickException as error:
            error.show()
            return STOP
        except PoolbisectError as error:
            click.echo(f"poolbisect: {error}", err=True)
            return for_git_bisect(error.exit_code)
        except Exception:
            click.echo(traceback.format_exc(), err=True)
            return STOP
        return for_git_bisect(code if isinstance(code, int) else 0)


def _stop(parent: click.Context | None, code: int) -> NoReturn:
    if parent is not None:
        parent.exit(code)
    raise click.exceptions.Exit(code)
