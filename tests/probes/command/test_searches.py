"""Whole searches with real commands over real histories; the user's repository stays as it was."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.bisection.outcome import Ending, Find, Kind, ProbeRequest, Verdict
from poolbisect.bisection.plan import Mode
from poolbisect.probes.command.options import BadIf, CommandOptions

EXIT = CommandOptions(bad_if=BadIf.EXIT)


def sh(code: str) -> list[str]:
    return ["sh", "-c", code]


def history(builder: Any, states: str) -> list[str]:
    """A commit a letter: g good, b bad, x cannot be run."""
    return [
        builder.commit(f"commit {number}", {"state": state, "n": f"{number}\n"})
        for number, state in enumerate(states)
    ]


JUDGE = "case $(cat state) in g) exit 0;; b) exit 1;; x) exit 125;; esac"


def test_exit_codes_find_the_commit_with_no_more_runs_than_a_bisect(
    builder: Any, bench: Any
) -> None:
    commits = history(builder, "g" * 12 + "b" * 12)
    result, plan, taken = bench.search(sh(JUDGE), ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.EXACT
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 12)
    assert len(taken) <= 2 + 5


def test_the_first_fixed_commit_is_another_question(builder: Any, bench: Any) -> None:
    commits = history(builder, "bbbbggg")
    result, _, _ = bench.search(sh(JUDGE), find=Find.FIXED, ends=(commits[0], "HEAD"))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 4)


def test_commits_that_do_not_run_are_a_range(builder: Any, bench: Any) -> None:
    # C2
    commits = history(builder, "ggxxxb")
    result, _, _ = bench.search(sh(JUDGE), EXIT, ends=(commits[0], "HEAD"))
    assert (result.kind, result.suspects, result.exit_code) == (Kind.SUSPECT_RANGE, (2, 5), 4)
    away = history(builder, "gxxxgggbb")
    result, _, _ = bench.search(sh(JUDGE), EXIT, ends=(away[0], "HEAD"))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 7)


def test_a_merge_is_the_culprit_though_nothing_inside_it_runs(builder: Any, bench: Any) -> None:
    # C5
    commits = history(builder, "gg")
    builder.git("checkout", "-q", "-b", "inner")
    builder.commit("inner 1", {"state": "x", "inner": "1"})
    builder.commit("inner 2", {"state": "x", "inner": "2"})
    builder.git("checkout", "-q", "main")
    builder.commit("mainline", {"other": "1"})
    builder.git("merge", "-q", "--no-ff", "--no-commit", "inner")
    merge = builder.commit("the merge", {"state": "b"})
    builder.commit("after", {"other": "2"})
    result, _, taken = bench.search(sh(JUDGE), EXIT, ends=(commits[0], "HEAD"))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 3)
    assert {seen.evidence["provenance"]["commit"] for _, seen in taken} <= {
        *commits,
        merge,
        builder.git("rev-parse", "HEAD^"),
        builder.git("rev-parse", "HEAD"),
        builder.git("rev-parse", "HEAD~2"),
    }


def test_one_lost_connection_blames_nobody(builder: Any, bench: Any) -> None:
    # C6: the run at the middle, which is good, loses its connection once.
    commits = history(builder, "g" * 8 + "b" * 4)
    once = shlex.quote(str(bench.folder / "once"))
    code = (
        f"if [ $(cat n) -eq 6 ] && [ ! -e {once} ]; then touch {once}; "
        f"echo 'Connection reset by peer'; exit 1; fi; {JUDGE}"
    )
    result, _, taken = bench.search(sh(code), EXIT, ends=(commits[0], "HEAD"))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 8)
    assert [seen.observation.ending for _, seen in taken].count(Ending.INFRA) == 1


def test_a_host_that_fails_more_often_than_not_stops_it(builder: Any, bench: Any) -> None:
    commits = history(builder, "g" * 8 + "b" * 4)
    code = f"if [ $(cat n) -gt 0 ]; then echo 'No space left on device'; exit 1; fi; {JUDGE}"
    result, _, _ = bench.search(sh(code), EXIT, ends=(commits[0], "HEAD"))
    assert (result.kind, result.exit_code) == (Kind.INFRASTRUCTURE, 3)


def test_a_score_line_is_enough(builder: Any, bench: Any) -> None:
    commits = history(builder, "ggggggbb")
    code = "if grep -q g state; then echo 'Accuracy: 0.776'; else echo 'Accuracy: 0.720'; fi"
    result, plan, _ = bench.search(sh(code), ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.VERDICTS
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 6)
    steady = CommandOptions(threshold=0.75, flaky=False)
    result, plan, _ = bench.search(sh(code), steady, ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.EXACT
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 6)


def test_a_score_of_many_questions_is_counted(builder: Any, bench: Any) -> None:
    commits = history(builder, "gggggbbb")
    code = "if grep -q g state; then echo 'Score: 0.900'; else echo 'Score: 0.500'; fi"
    result, plan, _ = bench.search(sh(code), CommandOptions(asked=1000), ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.COUNTS
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 5)


def test_few_questions_take_more_runs(builder: Any, bench: Any) -> None:
    commits = history(builder, "gggbbb")
    code = (
        "echo 'answered 40/40'; "
        "if grep -q g state; then echo 'Score: 0.700'; else echo 'Score: 0.500'; fi"
    )
    result, plan, taken = bench.search(sh(code), ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.COUNTS
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 3)
    assert len(taken) > 2 + 3


def test_ends_that_cannot_be_told_apart_blame_nobody(builder: Any, bench: Any) -> None:
    commits = history(builder, "gggbbb")
    code = (
        "echo 'answered 40/40'; "
        "if grep -q g state; then echo 'Score: 0.800'; else echo 'Score: 0.800'; fi"
    )
    result, _, taken = bench.search(sh(code), ends=(commits[0], "HEAD"))
    assert (result.kind, result.culprit) == (Kind.BOTH_GOOD, None)
    assert len(taken) <= 16


ANSWERS = """
import json, sys
bad = open("state").read() == "b"
with open(sys.argv[1], "w") as file:
    for number in range(200):
        correct = number % 4 > 0 and not (bad and number % 9 == 1)
        print(json.dumps({"id": number, "correct": correct}), file=file)
"""


def test_answers_of_the_same_questions_find_it_in_few_runs(builder: Any, bench: Any) -> None:
    commits = history(builder, "g" * 9 + "b" * 7)
    options = CommandOptions(score_file="{attempt}/answers.jsonl")
    command = [sys.executable, "-c", ANSWERS, "{attempt}/answers.jsonl"]
    result, plan, taken = bench.search(command, options, ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.PAIRED
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 9)
    assert len(taken) <= 4 + 6


def test_a_flaky_command_finds_it_with_repeats(builder: Any, bench: Any) -> None:
    # C11: three of ten runs at a bad commit look good.
    commits = history(builder, "g" * 8 + "b" * 8)
    count = shlex.quote(str(bench.folder / "count"))
    code = (
        f"echo >> {count}; grep -q g state && exit 0; "
        f"case $(($(wc -l < {count}) * 7 % 10)) in 0|1|2) exit 0;; *) exit 1;; esac"
    )
    options = CommandOptions(bad_if=BadIf.EXIT, flaky=True)
    result, plan, _ = bench.search(sh(code), options, ends=(commits[0], "HEAD"))
    assert plan.mode is Mode.VERDICTS
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 8)


def test_ends_that_score_alike_are_both_good(builder: Any, bench: Any) -> None:
    commits = history(builder, "gggg")
    result, _, _ = bench.search(sh("echo Score: 0.776"), ends=(commits[0], "HEAD"))
    assert (result.kind, result.exit_code) == (Kind.BOTH_GOOD, 2)


def test_the_newer_end_without_the_culprit(
    builder: Any, bench: Any, fingerprint: Callable[[Path], Any]
) -> None:
    builder.commit("0", {"state": "g\n", "other": "0\n"})
    builder.commit("breaks it", {"state": "b\n"})
    builder.commit("2", {"other": "2\n"})
    builder.commit("3", {"other": "3\n"})
    before = fingerprint(builder.folder)
    probe = bench.open(
        sh("test $(cat other) = 3 && grep -q g state"), EXIT, ends=("HEAD~3", "HEAD")
    )
    without = probe.probe_without(1, bench.attempt(), bench.said.append)
    conflict = probe.probe_without(2, bench.attempt(), bench.said.append)
    again = probe.probe(ProbeRequest(3), bench.attempt(), bench.said.append)
    probe.close()
    assert without.observation.verdict is Verdict.GOOD
    assert without.evidence["provenance"]["without"] == builder.git("rev-parse", "HEAD~2")
    assert "does not revert cleanly" in conflict
    assert again.observation.verdict is Verdict.BAD
    assert fingerprint(builder.folder) == before


def test_a_merge_is_taken_back_whole(builder: Any, bench: Any) -> None:
    builder.commit("0", {"state": "g\n"})
    builder.git("checkout", "-q", "-b", "inner")
    builder.commit("inner", {"state": "b\n"})
    builder.git("checkout", "-q", "main")
    builder.commit("mainline", {"other": "1\n"})
    builder.git("merge", "-q", "--no-ff", "-m", "the merge", "inner")
    builder.commit("after", {"other": "2\n"})
    probe = bench.open(sh("grep -q g state"), EXIT, ends=("HEAD~3", "HEAD"))
    without = probe.probe_without(2, bench.attempt(), bench.said.append)
    probe.close()
    assert without.observation.verdict is Verdict.GOOD


def test_the_repository_is_byte_for_byte_what_it_was(
    hostile: Any, bench: Any, fingerprint: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # C8
    monkeypatch.chdir(hostile.folder)
    before = fingerprint(hostile.folder)
    code = (
        "echo x > big.bin; git checkout -q HEAD~0; git commit -q --allow-empty -m x; "
        "git config core.editor x; git stash -q; mkdir -p collides untracked; "
        "grep -q good state.txt"
    )
    result, _, _ = bench.search(sh(code), EXIT, ends=(hostile.commits[0], "main"))
    assert (result.kind, result.culprit) == (Kind.CULPRIT, 3)
    assert fingerprint(hostile.folder) == before
    ran = hostile.trace.read_text() if hostile.trace.exists() else ""
    assert "post-checkout" not in ran


TOOL = """
import sys
from pathlib import Path
from uuid import uuid4
from poolbisect.bisection.outcome import ProbeRequest
from poolbisect.culprit.interface import Attempt
from poolbisect.history.ranges import commit_range
from poolbisect.history.repository import open_repository
from poolbisect.probes.command.options import BadIf, CommandOptions
from poolbisect.probes.command.probe import CommandProbe
folder = Path(sys.argv[1])
with open_repository(Path(sys.argv[2])) as repository:
    history = commit_range(repository, sys.argv[3], "main")
    probe = CommandProbe(history, ["sh", "-c", sys.argv[4]], CommandOptions(bad_if=BadIf.EXIT),
                         folder / "scratch", trees=folder / "trees")
    try:
        attempt = Attempt(1, uuid4().hex, folder)
        print(probe.probe(ProbeRequest(1), attempt, print).observation.note, flush=True)
    finally:
        probe.close()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_so_it_is_after_the_tool_was_ended_in_mid_run(
    hostile: Any,
    bench: Any,
    number: int,
    fingerprint: Callable[[Path], Any],
    until: Callable[..., Any],
    gone: Callable[[str], None],
) -> None:
    before = fingerprint(hostile.folder)
    mark = bench.folder / "mark"
    code = f"echo $POOLBISECT_TREE > {shlex.quote(str(mark))}; (setsid sleep 1000 &); sleep 1000"
    arguments = [str(bench.folder), str(hostile.folder), hostile.commits[0], code]
    with subprocess.Popen(
        [sys.executable, "-c", TOOL, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as tool:
        name = until(lambda: mark.is_file() and mark.read_text().strip())
        tool.send_signal(number)
        tool.wait(60)
    gone(name)
    assert fingerprint(hostile.folder) == before
    # The next one goes on in the same place, and removes what was left.
    done = bench.search(sh("grep -q good state.txt"), EXIT, ends=(hostile.commits[0], "main"))
    assert done[0].culprit == 3
    assert fingerprint(hostile.folder) == before
    assert not hostile.trace.exists()
