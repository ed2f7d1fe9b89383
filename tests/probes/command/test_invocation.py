"""What is typed after -- becomes what runs: placeholders, environment, and mistakes found early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.cli.command_options import (
    PARAMETERS,
    command_options,
    options_of,
    refuse_options,
)
from poolbisect.errors import UsageError
from poolbisect.probes.command.invocation import (
    Place,
    check_startable,
    environment,
    fill,
    used,
)
from poolbisect.probes.command.options import BadIf, CommandOptions, restored, stored

PLACE = Place("c" * 40, None, Path("/tree"), Path("/attempt"), "run", 50, 100)


def test_placeholders_are_filled_and_other_braces_are_not() -> None:
    words = "--at {commit} -o {attempt}/{run_id}.json {questions}+{offset} {tree}"
    assert fill(words, PLACE) == f"--at {'c' * 40} -o /attempt/run.json 50+100 /tree"
    for kept in ("{print $1}", '{"commit": 1}', "{}", "${HOME}", "{ commit }"):
        assert fill(kept, PLACE) == kept
    assert used(["{commit}", "x{offset}", "{other}"]) == {"commit", "offset"}


@given(st.text(alphabet=st.characters(exclude_characters="{}")))
def test_text_without_braces_is_as_it_was(text: str) -> None:
    assert fill(text, PLACE) == text
    assert used([text]) == frozenset()


def test_a_release_has_no_commit() -> None:
    release = Place(None, "0.5.12", Path("/"), Path("/attempt"), "run", 1, 0)
    assert fill("sglang=={release}", release) == "sglang==0.5.12"
    with pytest.raises(UsageError, match=r"releases are searched; use \{release\}"):
        fill("{commit}", release)
    assert environment(release)["POOLBISECT_RELEASE"] == "0.5.12"


def test_the_environment_says_which_run_it_is_and_leads_git_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIT_DIR", "/users")
    monkeypatch.setenv("GIT_INDEX_FILE", "/users/index")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "kept")
    found = environment(PLACE)
    assert "GIT_DIR" not in found
    assert "GIT_INDEX_FILE" not in found
    assert found["GIT_AUTHOR_NAME"] == "kept"
    assert found["POOLBISECT_COMMIT"] == "c" * 40
    assert found["POOLBISECT_ATTEMPT_DIR"] == "/attempt"
    assert found["POOLBISECT_RUN_ID"] == "run"
    assert (found["POOLBISECT_QUESTIONS"], found["POOLBISECT_OFFSET"]) == ("50", "100")


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    tree, here = tmp_path / "tree", tmp_path / "here"
    tree.mkdir()
    here.mkdir()
    for name in ("check.py", "check.sh", "tool"):
        (here / name).write_text("#!/bin/sh\n")
    (here / "tool").chmod(0o755)
    return tree, here


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([""], "is empty"),
        (["nothing-of-that-name"], "is not on PATH"),
        (["/nowhere/tool"], "not a file that can be executed"),
        (["./tool"], r"tool is not in the commit, .*give its full path"),
        (["python3", "check.py", "--x"], r"check\.py is not in the commit"),
        (["bash", "-x", "check.sh"], r"check\.sh is not in the commit"),
    ],
)
def test_what_cannot_start_anywhere_is_a_mistake(
    places: tuple[Path, Path], argv: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_startable(argv, *places)


@pytest.mark.parametrize(
    "argv",
    [
        ["true"],
        ["python3", "-c", "check.py"],
        ["python3", "-m", "check", "check.py"],
        ["cat", "check.py"],
        ["./not-there-either"],
        ["python3", "not-there-either.py"],
    ],
)
def test_what_may_start_at_some_commit_is_tried(places: tuple[Path, Path], argv: list[str]) -> None:
    check_startable(argv, *places)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bad_if": BadIf.EXIT, "threshold": 0.7}, "--threshold is about a score"),
        ({"bad_if": BadIf.CRASH, "score_key": "a"}, "--score-key is about a score"),
        ({"score_key": "a", "score_regex": "(a)"}, "give one"),
        ({"threshold": 75.0}, "not between 0 and 1"),
        ({"infra_patterns": ("(",)}, r"--infra-patterns? '\(' is no regular expression"),
        ({"score_regex": "acc="}, "has no group"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CommandOptions(**options)


def test_options_survive_a_session() -> None:
    options = CommandOptions(
        bad_if=BadIf.SCORE, score_file="{attempt}/x", flaky=False, infra_patterns=("a", "b")
    )
    kept = stored(("python", "ü"), options)
    assert kept == {
        "command": ["python", "ü"],
        "bad_if": "score",
        "score_file": "{attempt}/x",
        "flaky": False,
        "infra_patterns": ["a", "b"],
    }
    assert restored(kept) == (("python", "ü"), options)
    with pytest.raises(UsageError, match="no option 'colour'"):
        restored({"command": ["x"], "colour": "red"})
    with pytest.raises(UsageError, match="cannot be read"):
        restored({"command": ["x"], "threshold": "high"})


@click.command()
@click.option("--probe", default="command")
@command_options
@click.pass_context
def example(context: click.Context, probe: str, **given: Any) -> None:
    if probe != "command":
        refuse_options(context, probe)
    click.echo(repr(options_of(given)))


def test_the_command_line_makes_them() -> None:
    words = (
        "--bad-if score --score-file f --score-regex (x) --metric m --scale 100 --asked 9 "
        "--threshold 0.7 --deterministic --timeout 10m --keep-build --infra-pattern a "
        "--infra-pattern b --any-failure-counts"
    )
    made = CliRunner().invoke(example, words.split(), standalone_mode=False)
    assert made.exception is None
    assert made.output.strip() == repr(
        CommandOptions(
            bad_if=BadIf.SCORE,
            score_file="f",
            score_regex="(x)",
            metric="m",
            scale=100,
            asked=9,
            threshold=0.7,
            flaky=False,
            timeout=600.0,
            keep_build=True,
            infra_patterns=("a", "b"),
            any_failure_counts=True,
        )
    )
    default = CliRunner().invoke(example, [], standalone_mode=False)
    assert default.output.strip() == repr(CommandOptions())


def test_every_option_is_refused_with_another_probe() -> None:
    options = {p.name: p for p in example.params if p.name in PARAMETERS}
    assert set(options) == set(PARAMETERS) == set(CommandOptions.__dataclass_fields__)
    values = {"bad_if": "exit", "scale": "1", "asked": "1", "threshold": "0.5", "timeout": "1"}
    for name, option in options.items():
        is_flag = isinstance(option, click.Option) and option.is_flag
        words = [option.opts[0]] + ([] if is_flag else [values.get(name, "x")])
        made = CliRunner().invoke(example, ["--probe", "contract", *words], standalone_mode=False)
        assert isinstance(made.exception, UsageError), name
        assert f"{option.opts[0]} is for --probe command" in str(made.exception)
