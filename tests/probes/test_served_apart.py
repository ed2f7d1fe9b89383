"""Sources served in a child process: the same answers, and nothing they do reaches us."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest

from poolbisect.canary import RunRequest, probe_contracts, run
from poolbisect.cli import main
from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.evidence.verdict import Verdict
from poolbisect.history.releases import fetch_release
from poolbisect.history.source_tree import SourceTree
from poolbisect.measurement import Ended, Measurement
from poolbisect.models.loading import load_model
from poolbisect.pools.interface import HIDDEN_STATES, SubjectPools
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.upstream import load_upstream
from poolbisect.probes import limited_child
from poolbisect.probes.inspection import inspect_pools
from poolbisect.probes.miniature import Settings, Tick, measure
from poolbisect.probes.served_apart import ApartServer, Limits
from poolbisect.probes.upstream_pools import UpstreamPools
from poolbisect.scenario import load_scenario
from poolbisect.tasks.problem_set import load_problems

POOL = "sglang/srt/mem_cache/memory_pool.py"
USER = "sglang/srt/speculative/eagle_worker.py"
SCENARIO = load_scenario("mimo-canary")
SHORT = "self.req_to_token_pool.size"
WHOLE = "self.req_to_token_pool.req_to_token.shape[0]"
SOURCE = """
    import torch
    class ReqToTokenPool:
        def __init__(self, size, max_context_len, device, enable_memory_saver):
            self.size = size
            self.max_context_len = max_context_len
            self.device = device
            self.req_to_token = torch.zeros(
                (size + 1, max_context_len), dtype=torch.int32, device=device
            )
            self.free_slots = list(range(1, size + 1))
            self.freed = 0
            {made}
        def write(self, indices, values):
            self.req_to_token[indices] = values
        def available_size(self):
            return len(self.free_slots)
        def alloc(self, need_size):
            {taken}
            taken, self.free_slots = self.free_slots[:need_size], self.free_slots[need_size:]
            return taken
        def free(self, free_index):
            self.freed += 1
            {given}
            self.free_slots.append(free_index)
"""
CONSUMER = """
    import torch
    class Worker:
        def start(self):
            self.{buffer} = torch.empty(({rows}, 2, 128))
"""


class Sources(SourceTree):
    """A small SGLang that does `made` as it makes a pool, `taken` at every alloc and `given` at
    every free, that is once requests are being answered."""

    def __init__(
        self, made: str = "pass", taken: str = "pass", given: str = "pass", rows: str = WHOLE
    ) -> None:
        self._files = {
            POOL: textwrap.dedent(SOURCE).format(made=made, taken=taken, given=given),
            USER: textwrap.dedent(CONSUMER).format(buffer=HIDDEN_STATES, rows=rows),
        }

    @property
    def name(self) -> str:
        return "tree of the test"

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        return sorted(path for path, content in self._files.items() if text in content)


@pytest.fixture(scope="module")
def server() -> Iterator[ApartServer]:
    limits = Limits(3, wall_seconds=90, memory=1 << 30, threads=1, seconds_per_question=0.1)
    with ApartServer(limits) as made:
        yield made


def served(
    server: ApartServer,
    tree: SourceTree,
    first: int = 0,
    count: int = 80,
    watch: Callable[[Tick], None] | None = None,
) -> Measurement:
    return server.measure("subject", tree, SCENARIO, first, count, Settings(), watch)


def served_next(server: ApartServer) -> str:
    """How the next tree fares, whatever became of the one before: empty if it is served."""
    return served(server, Sources(), count=2).detail


def here(pools: SubjectPools, first: int, count: int) -> Measurement:
    problems = load_problems(SCENARIO.workload.task, first + count)[first:]
    model = load_model(SCENARIO.workload.model)
    return measure("subject", pools, SCENARIO, problems, model, Settings())


def timeless(measurement: Measurement) -> Measurement:
    """Without what differs between two runs of the same."""
    known = {"threads": None}
    return replace(measurement, seconds=0.0, provenance=measurement.provenance | known)


@pytest.mark.parametrize(("rows", "state"), [(SHORT, "original"), (WHOLE, "corrected")])
def test_apart_or_here_the_measurement_is_the_same(
    server: ApartServer, rows: str, state: str
) -> None:
    ticks: list[Tick] = []
    apart = served(server, Sources(rows=rows), 300, 150, ticks.append)
    assert apart.ended is Ended.MEASURED
    assert [answer.id for answer in apart.answers] == list(range(300, 450))
    assert bool(apart.memory.buffers) == (state == "original")
    assert timeless(apart) == timeless(here(ShippedPools(state), 300, 150))
    assert ticks[-1].done == 150
    assert ticks[-1].right == apart.correct
    assert [tick.done for tick in ticks] == sorted(tick.done for tick in ticks)


@pytest.mark.parametrize(("rows", "missing"), [(SHORT, 1), (WHOLE, 0)])
def test_apart_or_here_the_inspection_is_the_same(
    server: ApartServer, rows: str, missing: int
) -> None:
    tree = Sources(rows=rows)
    apart = server.inspect(tree, SCENARIO)
    assert apart == inspect_pools(lambda: UpstreamPools(load_upstream(tree)), SCENARIO)
    assert [one.missing for one in apart.contracts] == [missing]
    assert apart.questions_to_last_slot == 128


@pytest.mark.network
@pytest.mark.slow
def test_a_release_answers_as_it_does_in_this_process() -> None:
    try:
        tree = fetch_release("0.5.11")
    except InfrastructureError:
        if os.environ.get("CI"):
            raise
        pytest.skip("no package index can be reached")
    with ApartServer() as fresh:
        apart = served(fresh, tree, 0, 200)
    inside = here(UpstreamPools(load_upstream(tree)), 0, 200)
    assert replace(apart, seconds=0.0) == replace(inside, seconds=0.0)  # threads included
    assert apart.memory.buffers[0].index == 64


def test_no_code_of_the_sources_runs_here(server: ApartServer) -> None:
    used = psutil.Process().memory_info().rss
    big = "import sys; sys.met_sources = True; self.big = torch.ones(100 << 20)"
    assert served(server, Sources(big)).ended is Ended.MEASURED
    assert not hasattr(sys, "met_sources")
    assert psutil.Process().memory_info().rss - used < 100 << 20


def test_the_environment_of_the_child_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    asked = "import os; raise ValueError(sorted(os.environ.items()), torch.get_num_threads())"
    with ApartServer() as fresh:
        found = served(fresh, Sources(asked))
    assert "('OMP_NUM_THREADS', '2')" in found.detail
    assert "], 2)" in found.detail  # the user's threads, as without a child
    for word in ("MY_API_TOKEN", "secret", os.environ["HOME"] + "'"):
        assert word not in found.detail


@pytest.mark.parametrize(
    ("tree", "ended", "words"),
    [
        (Sources("bytearray(1 << 34)"), Ended.CRASHED, "Out of memory"),
        (Sources("self.big = torch.zeros(1 << 34)"), Ended.CRASHED, "Out of memory"),
        (Sources(given="bytearray(1 << 34)"), Ended.CRASHED, "Out of memory"),
        (Sources(rows="self.req_to_token_pool.size * 1000000"), Ended.CRASHED, "is too small"),
        (Sources("raise ValueError(7)"), Ended.CRASHED, "raised ValueError: 7"),
        (Sources("self.free_slots = []"), Ended.CRASHED, "without a free slot"),
        (Sources(given="import os; os._exit(3)"), Ended.CRASHED, "with status 3"),
        (Sources(given="raise KeyboardInterrupt"), Ended.CRASHED, "KeyboardInterrupt"),
        (Sources(rows="self.req_to_token_pool.unheard"), Ended.CRASHED, "unheard"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_sources_do_wrong_is_their_ending_and_the_next_is_served(
    server: ApartServer, tree: Sources, ended: Ended, words: str
) -> None:
    found = served(server, tree)
    assert (found.ended, found.asked) == (ended, 80)
    assert words in found.detail
    assert found.accuracy is None
    assert served_next(server) == ""


def test_sources_that_never_end_are_ended(server: ApartServer) -> None:
    found = served(server, Sources(taken="while True: pass"), count=2)
    assert found.ended is Ended.TIMED_OUT
    assert "3 seconds of processor time" in found.detail


def test_what_was_answered_before_the_sources_raised_is_kept(server: ApartServer) -> None:
    found = served(server, Sources(given="if self.freed > 9: raise LookupError('gone')"), count=300)
    assert found.ended is Ended.CRASHED
    assert found.detail == "LookupError: gone"
    assert 0 < found.answered < 300


@pytest.mark.parametrize("when", ["made", "given"])
@pytest.mark.parametrize(
    "what",
    [
        "open({path!r}, 'a').close()",
        "import os; os.mkdir('made')",
        "import subprocess; subprocess.run(['true'])",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_files_processes_and_network_are_out_of_reach_and_nobodys_fault(
    server: ApartServer, tmp_path: Path, what: str, when: str
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    found = served(server, Sources(**{when: what.format(path=str(file))}), count=2)
    assert found.ended is Ended.BUILD_FAILED
    assert "is not allowed here" in found.detail
    assert file.read_text() == "kept"


def test_what_the_sources_lack_is_not_applicable(server: ApartServer) -> None:
    tree = Sources()
    del tree._files[USER]
    assert served(server, tree).ended is Ended.NOT_APPLICABLE
    assert server.inspect(tree, SCENARIO).ended is Ended.NOT_APPLICABLE


def kill_child() -> None:
    for child in psutil.Process().children():
        if "sandbox_child" in " ".join(child.cmdline()):
            child.kill()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_child_that_is_killed_is_the_hosts_fault_and_the_next_is_served(
    server: ApartServer,
) -> None:
    found = served(server, Sources(), watch=lambda tick: kill_child())
    assert found.ended is Ended.INFRA
    assert "with signal 9" in found.detail
    assert served_next(server) == ""
    kill_child()  # while nothing is being served: nobody's measurement suffers
    assert served_next(server) == ""


def test_ctrl_c_gives_what_was_answered_until_then(server: ApartServer) -> None:
    def press(tick: Tick) -> None:
        if tick.done > 20:
            os.kill(os.getpid(), signal.SIGINT)

    found = served(server, Sources(), count=300, watch=press)
    assert found.ended is Ended.PARTIAL
    assert 20 < found.answered < 300
    assert found.detail == f"interrupted after {found.answered} of 300 questions"
    assert served_next(server) == ""


def test_ctrl_c_ends_sources_that_are_stuck(
    server: ApartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_child, "_WIND_UP_SECONDS", 0.2)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            served(server, Sources(taken="import time; time.sleep(3600)"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert served_next(server) == ""


def test_what_the_user_asks_in_vain_is_a_usage_error(server: ApartServer) -> None:
    with pytest.raises(UsageError, match="has 1319 problems, 1400 were asked for"):
        served(server, Sources(), 1300, 100)
    workload = msgspec.structs.replace(SCENARIO.workload, model="gpt")
    scenario = msgspec.structs.replace(SCENARIO, workload=workload)
    with pytest.raises(UsageError, match="no model is named 'gpt'"):
        server.measure("subject", Sources(), scenario, 0, 2, Settings())
    assert served_next(server) == ""


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("original", "--repo is for subjects that are commits"),
        ("commit:HEAD", "is no git repository"),
    ],
)
def test_a_repository_in_vain_is_a_usage_error(
    subject: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["run", "mimo-canary", "--subject", subject, "--repo", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["poolbisect", *given, "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_run_reads_commits_of_any_repository_and_runs_them_apart(
    new_repository: Callable[[str], object],
) -> None:
    builder = new_repository("clone of SGLang")
    marked = "import sys; sys.met_sources = True"
    trees = {rows: Sources(marked, rows=rows)._files for rows in (SHORT, WHOLE)}
    short, whole = (
        builder.commit(title, {f"python/{path}": text for path, text in trees[rows].items()})
        for title, rows in (("short", SHORT), ("whole", WHOLE))
    )
    request = RunRequest(
        SCENARIO, (f"commit:{short}", f"commit:{whole[:12]}"), 200, repo=builder.folder
    )
    findings = probe_contracts(request)
    assert [finding.short for finding in findings] == [False, True, False]
    reference, bad, good = run(request).verdicts
    assert bad.verdict is Verdict.BAD
    assert bad.measurement.provenance["commit"] == short
    assert [buffer.index for buffer in bad.measurement.memory.buffers] == [64]
    assert good.measurement.answers == reference.measurement.answers
    assert not hasattr(sys, "met_sources")
