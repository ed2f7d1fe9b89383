"""An evaluation of the user's runs against the server's URL; other symptoms than accuracy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from poolbisect.bisection.outcome import Ending, ProbeRequest, Verdict
from poolbisect.bisection.plan import Mode
from poolbisect.culprit.interface import Attempt, Probed
from poolbisect.errors import UsageError
from poolbisect.history.ranges import commit_range
from poolbisect.history.repository import open_repository
from poolbisect.probes.server.options import Isolation, ServerOptions, restored, stored
from poolbisect.probes.server.probe import ServerProbe

EVALUATION = """
import json, sys, urllib.request
url, out = sys.argv[1:3]
body = json.dumps({"prompt": "2*3:", "max_tokens": 9}).encode()
request = urllib.request.Request(url + "/v1/completions", body)
text = json.load(urllib.request.urlopen(request))["choices"][0]["text"]
score = 0.9 if text.endswith("6") else 0.2
%s
"""
PRINTED = 'print(f"Accuracy: {score:.3f}")'
WRITTEN = """
import pathlib
folder = pathlib.Path(out); folder.mkdir()
(folder / "answers.jsonl").write_text("".join(
    json.dumps({"id": n, "correct": n < 10 * score}) + "\\n" for n in range(10)))
"""


@pytest.fixture
def probe_at(
    builder: Any, tmp_path: Path, options: Callable[..., ServerOptions]
) -> Iterator[Callable[..., Probed]]:
    """Probe the newer of two commits, whose server is the stand-in."""
    first, last = builder.commit("one", {"a": "1"}), builder.commit("two", {"a": "2"})
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "2*3", "answer": "6"}\n' * 20)
    with ExitStack() as held:

        def probe(*flags: str, **more: Any) -> Probed:
            repository = held.enter_context(open_repository(builder.folder))
            few = {} if "eval_command" in more else {"evaluation": questions, "shots": 0}
            chosen = options(*flags, isolation=Isolation.GIVEN, **few, **more)
            opened = ServerProbe(commit_range(repository, first, last), chosen, tmp_path / "s")
            held.enter_context(closing(opened))
            folder = tmp_path / "attempt"
            folder.mkdir(exist_ok=True)
            return opened.probe(ProbeRequest(1, 20), Attempt(1, "r", folder), lambda words: None)

        yield probe


@pytest.mark.parametrize(("how", "out"), [(PRINTED, ""), (WRITTEN, "{out}")])
def test_its_score_is_read_from_its_output_or_its_files(
    probe_at: Callable[..., Probed], how: str, out: str
) -> None:
    command = (sys.executable, "-c", EVALUATION % how, "{url}", out)
    found = probe_at("--accept-length", "3", eval_command=command, asked=10)
    assert found.observation.ending is Ending.MEASURED, found.observation.note
    assert (found.observation.correct, found.observation.asked) == (9, 10)
    assert found.evidence["accept_length"] == 3.0
    assert found.evidence["provenance"]["evaluation"][0] == sys.executable


@pytest.mark.parametrize(("rule", "verdict"), [(0.5, Verdict.GOOD), (0.95, Verdict.BAD)])
def test_a_rule_judges_its_score(
    probe_at: Callable[..., Probed], rule: float, verdict: Verdict
) -> None:
    command = (sys.executable, "-c", EVALUATION % PRINTED, "{url}", "")
    assert probe_at(eval_command=command, rule=rule).observation.verdict is verdict


def test_an_evaluation_without_a_score_says_nothing_of_the_commit(
    probe_at: Callable[..., Probed],
) -> None:
    found = probe_at(eval_command=("sh", "-c", "echo no idea; exit 3"), asked=10)
    assert found.observation.ending is Ending.INFRA
    assert "gave no score (exit status 3)" in found.observation.note
    assert "no idea" in found.observation.note


def test_a_server_that_dies_under_it_is_the_ending(probe_at: Callable[..., Probed]) -> None:
    asked_often = "\nfor _ in range(20): urllib.request.urlopen(request)\nscore ="
    many = EVALUATION.replace("score =", asked_often)
    command = (sys.executable, "-c", many % PRINTED, "{url}", "")
    found = probe_at("--fault", "die", eval_command=command, asked=10)
    assert found.observation.ending is Ending.CRASHED
    assert "index 65 is out of bounds" in found.observation.note


@pytest.mark.parametrize(("length", "verdict"), [("3.3", Verdict.GOOD), ("3.1", Verdict.BAD)])
def test_accept_length_is_judged_by_the_rule(
    probe_at: Callable[..., Probed], length: str, verdict: Verdict
) -> None:
    found = probe_at("--accept-length", length, symptom="accept-length", rule=3.2)
    assert found.observation.verdict is verdict
    assert found.evidence["accept_length"] == float(length)


def test_a_server_that_does_not_speculate_has_none(probe_at: Callable[..., Probed]) -> None:
    found = probe_at(symptom="accept-length", rule=3.2)
    assert found.observation.ending is Ending.UNTESTABLE
    assert "no accept length" in found.observation.note


@pytest.mark.parametrize(
    ("fault", "ending", "verdict"),
    [
        ("", Ending.MEASURED, Verdict.GOOD),
        ("die", Ending.CRASHED, None),
        ("oom", Ending.UNTESTABLE, None),
    ],
)
def test_where_a_crash_is_looked_for_only_a_crash_is_bad(
    probe_at: Callable[..., Probed], fault: str, ending: Ending, verdict: Verdict | None
) -> None:
    found = probe_at("--fault", fault, symptom="crash").observation
    assert (found.ending, found.verdict) == (ending, verdict)


def plan_mode(tmp_path: Path, builder: Any, chosen: ServerOptions) -> Mode:
    first, last = builder.commit("one", {"a": "1"}), builder.commit("two", {"a": "2"})
    with open_repository(builder.folder) as repository:
        probe = ServerProbe(commit_range(repository, first, last), chosen, tmp_path / "s")
        with closing(probe):
            plan = probe.plan()
    assert plan.crash_is_bad == (chosen.symptom == "crash")
    return plan.mode


@pytest.mark.parametrize(
    ("more", "mode"),
    [
        ({}, Mode.PAIRED),
        ({"symptom": "crash"}, Mode.VERDICTS),
        ({"symptom": "accept-length", "rule": 3.2}, Mode.VERDICTS),
        ({"eval_command": ("x",), "asked": 200}, Mode.COUNTS),
        ({"eval_command": ("x",), "rule": 0.75}, Mode.VERDICTS),
    ],
)
def test_the_symptom_decides_how_to_search(
    tmp_path: Path, builder: Any, options: Any, more: dict[str, Any], mode: Mode
) -> None:
    assert plan_mode(tmp_path, builder, options(**more)) is mode


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"command": ("serve",)}, r"no \{port\}"),
        ({"symptom": "contract"}, "cannot be judged by contract"),
        ({"rule": 75.0}, "between 0 and 1"),
        ({"eval_command": ("x",)}, "--eval-asked"),
    ],
)
def test_options_that_contradict_each_other(options: Any, more: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        options(**more)


def test_options_survive_a_session(options: Any, tmp_path: Path) -> None:
    chosen = options("--x", isolation=Isolation.GIVEN, evaluation=tmp_path / "q.jsonl", rule=0.75)
    assert restored(stored(chosen)) == chosen
    with pytest.raises(UsageError, match="no option 'nonsense'"):
        restored({"nonsense": 1})
    with pytest.raises(UsageError, match="cannot be read"):
        restored({"port": "many"})
    with pytest.raises(UsageError, match=r"expected a Path, got 5 .*python"):
        restored({"python": 5})


def test_a_tree_that_there_is_none_of(options: Any) -> None:
    chosen = options(command=("{tree}/serve", "{port}"))
    with pytest.raises(UsageError, match="what is served is no commit"):
        chosen.argv(python=Path("p"), model="m", port=1, flags=(), tree=None)
    filled = chosen.argv(python=Path("p"), model="m", port=1, flags=(), tree=Path("/t"))
    assert filled == ("/t/serve", "1")
