"""Each end of a real command at a real commit is what the bisect is told."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.bisection.outcome import Ending, Find, ProbeRequest, Verdict
from poolbisect.bisection.plan import Mode
from poolbisect.culprit.interface import HistoryProbe
from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.release_ranges import ReleaseRange
from poolbisect.history.repository import open_repository
from poolbisect.probes.command.options import BadIf, CommandOptions, stored
from poolbisect.probes.command.probe import CommandProbe, open_command_probe
from poolbisect.probes.command.tree import marked

EXIT = CommandOptions(bad_if=BadIf.EXIT)
THRESHOLD = CommandOptions(threshold=0.75)


def sh(code: str) -> list[str]:
    return ["sh", "-c", code]


def py(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


@pytest.fixture
def two(builder: Any) -> Any:
    """A repository of two commits."""
    builder.commit("one", {"state.txt": "good\n", "score.txt": "0.776\n"})
    builder.commit("two", {"state.txt": "bad\n", "score.txt": "0.72\n"})
    return builder


@pytest.mark.parametrize(
    ("code", "options", "ending", "verdict", "note"),
    [
        ("exit 0", EXIT, Ending.MEASURED, Verdict.GOOD, "exit status 0"),
        ("exit 1", EXIT, Ending.MEASURED, Verdict.BAD, "exit status 1"),
        ("exit 124", EXIT, Ending.MEASURED, Verdict.BAD, "exit status 124"),
        ("exit 125", EXIT, Ending.UNTESTABLE, None, "asks to be skipped"),
        ("exec ./none", EXIT, Ending.UNTESTABLE, None, "exit status 127"),
        ("exec ./state.txt", EXIT, Ending.UNTESTABLE, None, "exit status 126"),
        ("exit 200", EXIT, Ending.CRASHED, None, "exit status 200"),
        ("kill -11 $$", EXIT, Ending.CRASHED, None, "SIGSEGV"),
        ("echo Connection refused; exit 1", EXIT, Ending.INFRA, None, "Connection refused"),
        ("echo Connection refused; exit 0", EXIT, Ending.MEASURED, Verdict.GOOD, "status 0"),
        ("echo Connection refused; exit 125", EXIT, Ending.UNTESTABLE, None, "skipped"),
        ("echo No space left on device; kill -6 $$", EXIT, Ending.INFRA, None, "SIGABRT"),
        ("echo Score: 0.72", EXIT, Ending.MEASURED, Verdict.GOOD, "exit status 0"),
        ("echo Score: 0.75", THRESHOLD, Ending.MEASURED, Verdict.GOOD, "score 0.75"),
        ("echo Score: 0.72", THRESHOLD, Ending.MEASURED, Verdict.BAD, "score 0.72"),
        ("echo Score: 0.72; exit 1", THRESHOLD, Ending.MEASURED, Verdict.BAD, "exit status 1"),
        ("echo Score: 0.72; exit 125", THRESHOLD, Ending.UNTESTABLE, None, "skipped"),
        ("echo Score: 0.72; kill -11 $$", THRESHOLD, Ending.CRASHED, None, "SIGSEGV"),
        ("echo no; exit 0", THRESHOLD, Ending.UNTESTABLE, None, "no score"),
        ("echo no; exit 1", THRESHOLD, Ending.UNTESTABLE, None, "exit status 1"),
        ("echo Connection reset by peer", THRESHOLD, Ending.INFRA, None, "reset by peer"),
        ("echo answered 160/200; echo Score: 0.775", THRESHOLD, Ending.INFRA, None, "160 of 200"),
        ("echo Score: 0.7; echo Score: 0.8", THRESHOLD, Ending.UNTESTABLE, None, "second score"),
    ],
)
def test_endings(
    two: Any,
    bench: Any,
    code: str,
    options: CommandOptions,
    ending: Ending,
    verdict: Verdict | None,
    note: str,
) -> None:
    seen = bench.once(sh(code), options).observation
    assert (seen.ending, seen.verdict) == (ending, verdict)
    assert note in seen.note


def test_it_is_a_probe_of_the_bisect(two: Any, bench: Any) -> None:
    probe: HistoryProbe = bench.open(sh("true"), EXIT)
    assert probe.name == "command"
    probe.close()
    probe.close()


def test_a_crash_may_be_what_is_looked_for(two: Any, bench: Any) -> None:
    options = CommandOptions(bad_if=BadIf.CRASH)
    assert bench.once(sh("kill -11 $$"), options).observation.ending is Ending.CRASHED
    assert bench.once(sh("exit 1"), options).observation.verdict is Verdict.GOOD
    assert bench.once(sh("kill -9 $$"), options).observation.ending is Ending.INFRA
    probe = bench.open(sh("true"), options)
    assert probe.plan().crash_is_bad
    probe.close()


def test_time_limits_end_a_run(two: Any, bench: Any) -> None:
    seen = bench.once(sh("sleep 1000"), CommandOptions(bad_if=BadIf.EXIT, timeout=0.3))
    assert seen.observation.ending is Ending.TIMED_OUT
    assert "time limit" in seen.observation.note


def test_any_failure_can_be_the_commands_own(two: Any, bench: Any) -> None:
    options = CommandOptions(bad_if=BadIf.EXIT, any_failure_counts=True)
    seen = bench.once(sh("echo Connection refused; exit 1"), options)
    assert seen.observation.verdict is Verdict.BAD


def test_it_runs_in_the_commit_and_says_what_ran(two: Any, bench: Any) -> None:
    code = 'cat state.txt; echo "$POOLBISECT_COMMIT" {commit}; pwd; echo {attempt}; exit 3'
    probe = bench.open(sh(code), EXIT)
    attempt = bench.attempt()
    probe.plan()
    seen = probe.probe(ProbeRequest(1), attempt, bench.said.append)
    probe.close()
    head = two.git("rev-parse", "HEAD")
    state, commits, where, folder = (attempt.folder / "log.txt").read_text().splitlines()
    assert (state, commits, folder) == ("bad", f"{head} {head}", str(attempt.folder))
    assert not where.startswith(str(two.folder))
    assert seen.evidence["log"] == "log.txt"
    assert seen.observation.note == "exit status 3"
    assert seen.evidence["detail"] == "exit status 3 (the exit status judges, as asked for)"
    ran = seen.evidence["provenance"]
    assert ran["command"] == ["sh", "-c", code.format(commit=head, attempt=attempt.folder)]
    assert (ran["commit"], ran["run_id"], ran["status"]) == (head, attempt.run_id, 3)
    json.dumps(seen.evidence)


def test_left_processes_are_said(two: Any, bench: Any) -> None:
    seen = bench.once(sh("sleep 1000 & exit 0"), EXIT)
    assert seen.evidence["left_running"] == ["sleep"]


def test_submodules_are_said_to_be_empty(
    two: Any, bench: Any, new_repository: Callable[[str], Any]
) -> None:
    other = new_repository("other")
    other.commit("inner", {"inner.txt": "x"})
    two.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", other.folder, "sub")
    two.commit("with a submodule")
    seen = bench.once(sh('test -z "$(ls sub)"'), EXIT, position=1)
    assert seen.observation.verdict is Verdict.GOOD
    assert seen.evidence["provenance"]["submodules_left_empty"] == ["sub"]


def test_a_result_left_from_an_earlier_run_is_refused(two: Any, bench: Any) -> None:
    # C9: the build fails at the second commit, and the first one's result is still there.
    result = bench.folder / "result.json"
    code = f"grep -q good state.txt && echo '{{\"acc\": 0.9}}' > {shlex.quote(str(result))}; exit 0"
    options = CommandOptions(score_file=str(result), score_key="acc", threshold=0.75)
    probe = bench.open(sh(code), options)
    probe.plan()
    first = probe.probe(ProbeRequest(0), bench.attempt(), bench.said.append).observation
    second = probe.probe(ProbeRequest(1), bench.attempt(), bench.said.append).observation
    probe.close()
    assert first.verdict is Verdict.GOOD
    assert second.ending is Ending.UNTESTABLE
    assert "left from before this run" in second.note


def test_a_result_of_another_run_is_refused(two: Any, bench: Any) -> None:
    options = CommandOptions(score_file="{attempt}/r.json", score_key="acc", threshold=0.75)
    ours = 'echo "{\\"acc\\": 0.9, \\"run_id\\": \\"$POOLBISECT_RUN_ID\\"}" > {attempt}/r.json'
    assert bench.once(sh(ours), options).observation.verdict is Verdict.GOOD
    other = sh(ours.replace("$POOLBISECT_RUN_ID", "0" * 32))
    seen = bench.once(other, options).observation
    assert seen.ending is Ending.UNTESTABLE
    assert "is of run 0000" in seen.note


ANSWERS = """
import json, sys
out, count, lost = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
right = open("state.txt").read() == "good\\n"
with open(out, "w") as file:
    for number in range(count):
        correct = None if number < lost else right or number % 4 > 0
        print(json.dumps({"id": f"q{number:03}", "correct": correct}), file=file)
"""


def test_lost_questions_are_infra_and_never_wrong_answers(two: Any, bench: Any) -> None:
    # B14
    options = CommandOptions(score_file="{attempt}/a.jsonl")
    seen = bench.once(py(ANSWERS, "{attempt}/a.jsonl", "200", "1"), options)
    assert (seen.observation.correct, seen.observation.asked) == (199, 199)
    threshold = CommandOptions(score_file="{attempt}/a.jsonl", threshold=0.75)
    lost = bench.once(py(ANSWERS, "{attempt}/a.jsonl", "200", "40"), threshold).observation
    assert lost.ending is Ending.INFRA
    assert (lost.correct, lost.asked) == (0, 0)
    assert "40 of 200" in lost.note


def test_answers_are_compared_one_by_one(two: Any, bench: Any) -> None:
    probe = bench.open(
        py(ANSWERS, "{attempt}/a.jsonl", "120", "0"), CommandOptions(score_file="{attempt}/a.jsonl")
    )
    plan = probe.plan()
    assert plan.mode is Mode.PAIRED
    assert (plan.batch, plan.first_questions, plan.most_end_questions) == (120, 120, 120)
    good = probe.probe(ProbeRequest(0, 120), bench.attempt(), bench.said.append).observation
    bad = probe.probe(ProbeRequest(1, 120), bench.attempt(), bench.said.append).observation
    probe.close()
    assert good.outcomes == "1" * 120
    assert bad.outcomes == "0111" * 30


PART = """
import json, sys
first, count = int(sys.argv[2]), int(sys.argv[3])
with open(sys.argv[1], "w") as file:
    for number in reversed(range(first, first + count)):
        print(json.dumps({"id": number, "correct": number % 3 > 0}), file=file)
"""


def test_part_of_the_questions_can_be_asked(two: Any, bench: Any) -> None:
    options = CommandOptions(score_file="{attempt}/a.jsonl", asked=300)
    command = py(PART, "{attempt}/a.jsonl", "{offset}", "{questions}")
    probe = bench.open(command, options)
    plan = probe.plan()
    assert (plan.mode, plan.most_end_questions) == (Mode.PAIRED, 300)

    def ask(questions: int, offset: int) -> Any:
        request = ProbeRequest(1, questions, offset)
        return probe.probe(request, bench.attempt(), bench.said.append).observation

    first, second = ask(20, 0), ask(10, 20)
    probe.close()
    expected = "".join(str(int(number % 3 > 0)) for number in range(30))
    assert (first.offset, first.outcomes) == (0, expected[:20])
    assert (second.offset, second.outcomes) == (20, expected[20:])


def test_a_command_without_offset_is_asked_from_the_start(two: Any, bench: Any) -> None:
    options = CommandOptions(score_file="{attempt}/a.jsonl", asked=300)
    probe = bench.open(py(PART, "{attempt}/a.jsonl", "0", "{questions}"), options)
    probe.plan()
    request = ProbeRequest(1, 10, 20)
    seen = probe.probe(request, bench.attempt(), bench.said.append).observation
    probe.close()
    assert (seen.offset, seen.asked) == (0, 30)


def test_other_questions_than_before_cannot_be_compared(two: Any, bench: Any) -> None:
    code = ANSWERS.replace("q{number", "{open('state.txt').read().strip()}{number")
    probe = bench.open(
        py(code, "{attempt}/a.jsonl", "50", "0"), CommandOptions(score_file="{attempt}/a.jsonl")
    )
    probe.plan()
    seen = probe.probe(ProbeRequest(1, 50), bench.attempt(), bench.said.append).observation
    probe.close()
    assert seen.ending is Ending.UNTESTABLE
    assert "50 of 50 questions have ids that no run before had" in seen.note


RUNS = "echo run >> {runs}; "


@pytest.mark.parametrize(
    ("code", "mode", "looks", "why"),
    [
        ("exit 0", Mode.EXACT, 1, "exit status judges"),
        ("exit 1", Mode.EXACT, 1, "exit status judges"),
        ("echo Accuracy: $(cat score.txt)", Mode.VERDICTS, 2, "half way between"),
        ("echo 'Score: 0.5'; echo 'answered 40/40'", Mode.COUNTS, 1, "among 40 questions"),
    ],
)
def test_without_options_the_first_run_says_how_to_judge(
    two: Any, bench: Any, code: str, mode: Mode, looks: int, why: str
) -> None:
    runs = bench.folder / "runs"
    probe = bench.open(sh(f"echo run >> {shlex.quote(str(runs))}; {code}"))
    assert probe.plan().mode is mode
    assert probe.plan().mode is mode
    assert len(runs.read_text().split()) == looks
    for position in (0, 1):
        attempt = bench.attempt()
        seen = probe.probe(ProbeRequest(position), attempt, bench.said.append)
        assert why in seen.evidence["provenance"]["judged_by"]
        assert (attempt.folder / "log.txt").is_file()
    assert len(runs.read_text().split()) == 2  # the looks were the ends' first measurements
    probe.probe(ProbeRequest(0), bench.attempt(), bench.said.append)
    assert len(runs.read_text().split()) == 3
    probe.close()
    assert not list(bench.folder.glob("scratch/look-*"))


def test_scores_half_way_are_those_of_the_right_ends(two: Any, bench: Any) -> None:
    command = sh("echo Accuracy: $(cat score.txt)")
    found = {}
    for find in (Find.INTRODUCED, Find.FIXED):
        probe = bench.open(command, find=find)
        probe.plan()
        found[find] = [
            probe.probe(ProbeRequest(p), bench.attempt(), bench.said.append).observation.verdict
            for p in (0, 1)
        ]
        probe.close()
    assert found[Find.INTRODUCED] == [Verdict.GOOD, Verdict.BAD]
    # Looking for a fix in a history that fell: the ends are alike, and so is what is said.
    assert found[Find.FIXED] == [Verdict.GOOD, Verdict.GOOD]


def test_a_score_that_was_asked_for_and_is_not_there_is_a_mistake(two: Any, bench: Any) -> None:
    probe = bench.open(sh("echo nothing"), CommandOptions(bad_if=BadIf.SCORE))
    with pytest.raises(UsageError, match="no score at either end"):
        probe.plan()
    probe.close()


TWICE = "echo Accuracy: 0.776; echo Accuracy: 0.776"


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        ("echo Accuracy: 776", CommandOptions(), r"output:1: Accuracy is 776, .*--bad-if exit\.$"),
        ("echo Accuracy: 776; exit 1", CommandOptions(), r"output:1: Accuracy is 776"),
        ("echo Accuracy: 776", CommandOptions(scale=100), r"output:1: Accuracy is 776, above 100"),
        ("echo Accuracy: 77.6", CommandOptions(flaky=False), r"output:1: .*give --scale 100"),
        ("echo; " + TWICE, CommandOptions(), r"output:3: a second score.*--score-regex"),
        ("echo '{\"id\": 1}'; echo Accuracy: 0.7", CommandOptions(), r"output:2: the JSON breaks"),
        ("echo '{\"acc\": 776}'", CommandOptions(score_key="acc"), r"output:1: acc is 776"),
        (
            "echo '{\"accuracy\": 776}' > {attempt}/s.json",
            CommandOptions(score_file="{attempt}/s.json"),
            r"s\.json:1: accuracy is 776",
        ),
    ],
)
def test_a_score_that_cannot_be_read_never_passes_for_none(
    two: Any, bench: Any, code: str, options: CommandOptions, message: str
) -> None:
    runs = bench.folder / "runs"
    probe = bench.open(sh(f"echo run >> {shlex.quote(str(runs))}; {code}"), options)
    with pytest.raises(UsageError, match=message):
        probe.plan()
    probe.close()
    assert len(runs.read_text().split()) == 1


def test_at_the_newer_end_it_is_a_mistake_as_well(two: Any, bench: Any) -> None:
    scores = "if grep -q bad state.txt; then echo Accuracy: nan; else echo Accuracy: 0.776; fi"
    probe = bench.open(sh(scores))
    with pytest.raises(UsageError, match=r"output:1: Accuracy is 'nan', not a score"):
        probe.plan()
    probe.close()


@pytest.mark.parametrize("bad_if", [BadIf.EXIT, BadIf.CRASH])
def test_where_scores_are_not_looked_at_they_may_be_anything(
    two: Any, bench: Any, bad_if: BadIf
) -> None:
    seen = bench.once(sh(TWICE), CommandOptions(bad_if=bad_if))
    assert seen.observation.verdict is Verdict.GOOD


@pytest.mark.parametrize("said", ["nothing", '{"id": 1, "half', '{"level": "info"}', "[1, 2]"])
def test_output_that_states_no_score_leaves_it_to_the_exit_status(
    two: Any, bench: Any, said: str
) -> None:
    seen = bench.once(sh(f"echo {shlex.quote(said)}; exit 1"))
    assert seen.observation.verdict is Verdict.BAD
    judged = "the first run gave no score, so the exit status judges"
    assert seen.evidence["detail"] == f"exit status 1 ({judged})"


def test_a_scale_says_that_there_is_a_score(two: Any, bench: Any) -> None:
    probe = bench.open(sh("echo nothing"), CommandOptions(scale=100))
    with pytest.raises(UsageError, match="no score at either end"):
        probe.plan()
    probe.close()
    with pytest.raises(UsageError, match="--scale is about a score, which --bad-if exit"):
        CommandOptions(bad_if=BadIf.EXIT, scale=100)


def test_a_failure_of_the_host_decides_nothing(two: Any, bench: Any) -> None:
    """The first run loses its connection; that it has no score does not mean that none has."""
    runs = shlex.quote(str(bench.folder / "runs"))
    score = "echo 'answered 1000/1000'; echo Accuracy: $(cat score.txt)"
    lost = "echo Connection reset by peer; exit 1"
    once = f"echo run >> {runs}; if [ $(wc -l < {runs}) -eq 1 ]; then {lost}; fi; {score}"
    probe = bench.open(sh(once))
    assert probe.plan().mode is Mode.COUNTS
    first = probe.probe(ProbeRequest(0, 1000), bench.attempt(), bench.said.append).observation
    again = probe.probe(ProbeRequest(0, 1000), bench.attempt(), bench.said.append).observation
    probe.close()
    assert first.ending is Ending.INFRA
    assert (again.correct, again.asked) == (776, 1000)
    for code, message in {
        lost: r"could not be run at the ends \(Connection reset by peer\)",
        f"if grep -q bad state.txt; then {lost}; fi; echo Score: 0.776": "one end scores 0.776",
    }.items():
        probe = bench.open(sh(code))
        with pytest.raises(InfrastructureError, match=message):
            probe.plan()
        probe.close()


def test_an_end_that_cannot_be_run_is_left_to_the_search(two: Any, bench: Any) -> None:
    probe = bench.open(sh("exit 125"))
    assert probe.plan().mode is Mode.EXACT
    seen = probe.probe(ProbeRequest(0), bench.attempt(), bench.said.append).observation
    probe.close()
    assert seen.ending is Ending.UNTESTABLE


def test_one_score_of_unknown_precision_judges_nothing(two: Any, bench: Any) -> None:
    probe = bench.open(sh("grep -q bad state.txt && exit 1; echo Score: 0.776"))
    with pytest.raises(UsageError, match=r"one end scores 0\.776.*--threshold"):
        probe.plan()
    probe.close()


def test_what_was_decided_holds_after_a_resume(two: Any, bench: Any) -> None:
    command = sh("echo Accuracy: $(cat score.txt)")
    probe = bench.open(command)
    probe.plan()
    probe.close()
    history = probe._history
    kept = stored(command, CommandOptions())
    again = open_command_probe(kept, history, bench.folder / "scratch")
    again._trees_root = bench.folder / "trees"
    seen = again.probe(ProbeRequest(1), bench.attempt(), bench.said.append)
    again.close()
    assert seen.observation.verdict is Verdict.BAD
    assert "half way between" in seen.evidence["provenance"]["judged_by"]


def test_a_script_that_lies_elsewhere_is_a_mistake(
    two: Any, bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "check.sh").write_text("exit 0\n")
    monkeypatch.chdir(tmp_path)
    for options in (EXIT, CommandOptions()):
        with pytest.raises(UsageError, match=r"check\.sh is not in the commit"):
            bench.once(["sh", "check.sh"], options)
    assert bench.once(["sh", str(tmp_path / "check.sh")], EXIT).observation.verdict is Verdict.GOOD


def test_a_script_of_the_repository_is_that_of_the_commit(
    two: Any, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.commit("with a check", {"check.sh": "exit 7\n"})
    monkeypatch.chdir(two.folder)
    two.write("check.sh", "exit 0\n")
    seen = bench.once(["sh", "check.sh"], EXIT, position=1).observation
    assert seen.note == "exit status 7"


def test_a_partial_clone_is_infra_that_says_so(two: Any, bench: Any, tmp_path: Path) -> None:
    two.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    source = f"file://{two.folder}"
    two.git("clone", "-q", "--filter=blob:none", "--no-checkout", source, str(clone))
    bench.repository = clone
    seen = bench.once(sh("exit 0"), EXIT).observation
    assert seen.ending is Ending.INFRA
    assert "partial clone" in seen.note


def test_releases_have_no_work_tree(bench: Any, tmp_path: Path) -> None:
    history = ReleaseRange(("0.5.11", "0.5.12"))
    command = sh('test "$POOLBISECT_RELEASE" = {release}; test {release} = 0.5.11')
    probe = CommandProbe(history, command, EXIT, bench.folder / "scratch")
    verdicts = [
        probe.probe(ProbeRequest(p), bench.attempt(), bench.said.append).observation.verdict
        for p in (0, 1)
    ]
    probe.close()
    assert verdicts == [Verdict.GOOD, Verdict.BAD]
    with pytest.raises(UsageError, match=r"\{commit\} has no value where releases are searched"):
        CommandProbe(history, sh("{commit}"), EXIT, bench.folder / "scratch")


def test_two_bisects_do_not_share_work_trees(two: Any, bench: Any) -> None:
    first = bench.open(sh("exit 0"), EXIT)
    first.probe(ProbeRequest(0), bench.attempt(), bench.said.append)
    second = bench.open(sh("exit 0"), EXIT)
    with pytest.raises(UsageError, match="another bisect is using"):
        second.probe(ProbeRequest(0), bench.attempt(), bench.said.append)
    second.close()
    first.close()


def test_work_trees_of_killed_bisects_are_removed(two: Any, bench: Any) -> None:
    abandoned = bench.folder / "trees" / "0123456789abcdef"
    (abandoned / "shared").mkdir(parents=True)
    (bench.folder / "trees" / "0123456789abcdef.lock").touch()
    bench.once(sh("exit 0"), EXIT)
    assert not abandoned.exists()
    assert sorted(path.name for path in (bench.folder / "trees").iterdir()) == ["all.lock"]


def test_an_empty_command_is_a_mistake(two: Any, bench: Any) -> None:
    with pytest.raises(UsageError, match="there is no command"):
        bench.open([])


def test_nothing_of_a_run_is_left_when_it_is_interrupted(
    two: Any, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "echo $POOLBISECT_TREE > {attempt}/mark; kill -INT $TOOL; sleep 1000"
    monkeypatch.setenv("TOOL", str(os.getpid()))
    probe = bench.open(sh(code), EXIT)
    attempt = bench.attempt()
    with pytest.raises(KeyboardInterrupt):
        probe.probe(ProbeRequest(0), attempt, bench.said.append)
    probe.close()
    assert list(marked((attempt.folder / "mark").read_text().strip())) == []


def test_the_repository_can_be_read_meanwhile(two: Any, bench: Any) -> None:
    probe = bench.open(sh("git log --format=%s | head -1; exit 0"), EXIT)
    attempt = bench.attempt()
    probe.probe(ProbeRequest(0), attempt, bench.said.append)
    probe.close()
    assert (attempt.folder / "stdout.txt").read_text() == "one\n"
    with open_repository(two.folder) as repository:
        assert repository.commit("HEAD").title == "two"
