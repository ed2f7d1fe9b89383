"""`poolbisect run --git-bisect` inside a real `git bisect run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from poolbisect.cli.git_bisect import STOP, GitBisectCommand, for_git_bisect
from poolbisect.errors import InfrastructureError, NotApplicableError, UsageError


@pytest.mark.parametrize(
    ("ours", "gits"), [(0, 0), (1, 1), (4, 125), (2, 129), (3, 129), (130, 130), (77, 129)]
)
def test_every_exit_code_has_one_of_gits(ours: int, gits: int) -> None:
    assert for_git_bisect(ours) == gits


@click.group()
def group() -> None: ...


@group.command(name="run", cls=GitBisectCommand)
@click.argument("what")
@click.option("--questions", type=int)
def run(what: str, questions: int | None) -> int:
    """Ends as `poolbisect run` could."""
    match what:
        case "usage":
            raise UsageError("no such scenario")
        case "infra":
            raise InfrastructureError("no space")
        case "other":
            raise NotApplicableError("cannot be asked")
        case "broken":
            raise RuntimeError("a mistake of ours")
        case "click":
            raise click.UsageError("not together")
    return int(what)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["0"], 0),
        (["1"], 1),
        (["4"], 125),
        (["3"], STOP),
        (["130"], 130),
        (["usage"], STOP),
        (["infra"], STOP),
        (["other"], 125),
        (["broken"], STOP),
        (["click"], STOP),
        (["1", "--questons", "5"], STOP),
        (["1", "--questions", "many"], STOP),
        ([], STOP),
    ],
)
def test_whatever_happens_git_is_told_what_it_understands(arguments: list[str], code: int) -> None:
    made = CliRunner().invoke(group, ["run", "--git-bisect", *arguments], standalone_mode=False)
    assert made.exception is None
    assert made.return_value == code


def test_without_the_option_nothing_changes() -> None:
    made = CliRunner().invoke(group, ["run", "4"], standalone_mode=False)
    assert made.return_value == 4
    made = CliRunner().invoke(group, ["run", "usage"], standalone_mode=False)
    assert isinstance(made.exception, UsageError)
    made = CliRunner().invoke(group, ["run", "4", "--colour"], standalone_mode=False)
    assert isinstance(made.exception, click.UsageError)


def bisect(builder: Any, good: str, *command: str) -> str:
    """The commit that `git bisect run` holds for the first bad one, the tip being bad.

    Read from git's own ref: the words it uses change.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OMP_NUM_THREADS": "1",
    }
    for arguments in (("start", "HEAD", good), ("run", *command)):
        subprocess.run(
            ["git", "bisect", *arguments],
            cwd=builder.folder,
            env=environment,
            capture_output=True,
            check=False,
        )
    found = builder.git("rev-parse", "refs/bisect/bad")
    builder.git("bisect", "reset")
    return str(found)


TOOL = """
import sys
import click
from poolbisect.cli.git_bisect import GitBisectCommand

@click.command(cls=GitBisectCommand)
def run():
    return int(open("code").read())

sys.exit(run.main(sys.argv[1:], standalone_mode=False))
"""


def test_git_finds_the_commit_past_untestable_ones(builder: Any, tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(TOOL)
    good = builder.commit("0", {"code": "0"})
    for number, code in enumerate("04440"):
        builder.commit(f"{number + 1}", {"code": code, "n": f"{number}"})
    culprit = builder.commit("culprit", {"code": "1"})
    builder.commit("later", {"n": "later"})
    tool = (sys.executable, str(tmp_path / "tool.py"))
    assert bisect(builder, good, *tool, "--git-bisect") == culprit
    # Without it git takes a commit that cannot be tested for a bad one.
    assert bisect(builder, good, *tool) != culprit


def test_git_stops_at_a_failure_of_the_host(builder: Any, tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(TOOL)
    good = builder.commit("0", {"code": "0"})
    for number in range(4):
        tip = builder.commit(f"{number + 1}", {"code": "3", "n": f"{number}"})
    tool = (sys.executable, str(tmp_path / "tool.py"))
    assert bisect(builder, good, *tool, "--git-bisect") == tip


@pytest.mark.slow
def test_poolbisect_itself_runs_inside_git_bisect(story: Any, new_repository: Any) -> None:
    builder = new_repository("clone")
    builder.git("fetch", "-q", str(story.folder), "main")
    commits = story.commits
    builder.git("reset", "-q", "--hard", commits["mended"])
    good = commits["mended"]
    worker = builder.git("show", f"{good}:{story.WORKER}")
    builder.commit("docs", {"docs/more.md": "more\n"})
    builder.commit("unparsable", {story.WORKER: "def broken(:\n    token_table"})
    builder.commit("parsable", {story.WORKER: worker})
    broken = builder.git("show", f"{commits['broken again']}:{story.WORKER}")
    culprit = builder.commit("too short again", {story.WORKER: broken})
    command = (sys.executable, "-m", "poolbisect", "run", "ngram-canary", "--probe", "contract")
    found = bisect(builder, good, *command, "--subject", "commit:HEAD", "--git-bisect")
    assert found == culprit
