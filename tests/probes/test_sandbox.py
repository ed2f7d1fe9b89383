"""What sources under test may do to the process that runs them, and what becomes of the next."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from poolbisect.errors import InfrastructureError
from poolbisect.history.source_tree import SourceTree
from poolbisect.probes import limited_child
from poolbisect.probes.facets import Condition, PoolKind, PoolPlan, PoolState
from poolbisect.probes.sandbox import Limits, Sandbox

POOL = "sglang/srt/mem_cache/memory_pool.py"
USER = "sglang/srt/model_executor/model_runner.py"
PLANS = (PoolPlan(PoolKind.NORMAL, 8, ("token_table",)),)
GOOD = """
    import torch
    class ReqToTokenPool:
        def __init__(self, size, max_context_len, device, enable_memory_saver):
            self.size = size
            self.req_to_token = torch.zeros((size, max_context_len))
            self.free_slots = list(range(size))
            {extra}
        def alloc(self, need_size):
            taken, self.free_slots = self.free_slots[:need_size], self.free_slots[need_size:]
            return taken
        def free(self, free_index):
            self.free_slots.append(free_index)
        def available_size(self):
            return len(self.free_slots)
"""


class Sources(SourceTree):
    def __init__(self, extra: str = "pass", **more: str) -> None:
        self._files = {POOL: textwrap.dedent(GOOD).format(extra=extra)} | more

    @property
    def name(self) -> str:
        return "tree of the test"

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        return sorted(path for path, content in self._files.items() if text in content)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(Limits(cpu_seconds=2, wall_seconds=60, memory=1 << 30)) as made:
        yield made


def normal(sandbox: Sandbox, extra: str = "pass") -> PoolState:
    return sandbox.probe(Sources(extra), PLANS).pools[PoolKind.NORMAL]


def test_sources_are_served_as_they_are_asked_for(sandbox: Sandbox) -> None:
    rows = "self.req_to_token_pool.size"
    table = f"class R:\n def start(self):\n  self.token_table = torch.empty(({rows}, 4))\n"
    state = sandbox.probe(Sources(**{USER: table}), PLANS)
    pool = state.pools[PoolKind.NORMAL]
    assert pool.condition is Condition.OK
    assert pool.behaviour["slots"] == "0..7 of 8 rows, no padding row"
    assert pool.behaviour["slot order"] == "first in, first out"
    assert pool.behaviour["API"] == "alloc(need_size), free(free_index)"
    buffer = pool.buffers["token_table"]
    assert (buffer.condition, buffer.rows, buffer.last) == (Condition.OK, 8, 7)
    assert (buffer.file, buffer.line) == (USER, 3)
    assert state.untestable == ""


def test_the_sources_own_exceptions_are_their_fault(sandbox: Sandbox) -> None:
    found = normal(sandbox, "self.req_to_token[size] = 1")
    assert found.condition is Condition.CRASHED
    assert "IndexError" in found.detail
    assert "index 8" in found.detail


def test_what_our_stand_ins_cannot_answer_is_ours(sandbox: Sandbox) -> None:
    found = normal(sandbox, "self.size = get_world_size() + 1")
    assert found.condition is Condition.CRASHED  # a name that the sources do not have
    tree = Sources("self.rows = get_world_size() + 1")
    tree._files[POOL] = "from sglang.srt.distributed import get_world_size\n" + tree._files[POOL]
    state = sandbox.probe(tree, PLANS)
    assert state.pools[PoolKind.NORMAL].condition is Condition.UNTESTABLE
    assert "get_world_size" in state.untestable


@pytest.mark.parametrize(
    ("extra", "condition", "words"),
    [
        ("import os; os._exit(3)", Condition.CRASHED, "with status 3"),
        ("import os; os.abort()", Condition.CRASHED, "with signal 6"),
        ("while True: pass", Condition.TIMED_OUT, "2 seconds of processor time"),
        ("self.rows = torch.zeros(1 << 31)", Condition.CRASHED, "Out of memory"),
        ("self.rows = bytearray(1 << 32)", Condition.CRASHED, "Out of memory"),
        ("raise SystemExit(0)", Condition.CRASHED, "with status 0"),
    ],
)
def test_what_kills_the_child_is_the_sources_own_and_the_next_is_answered(
    sandbox: Sandbox, extra: str, condition: Condition, words: str
) -> None:
    found = normal(sandbox, extra)
    assert found.condition is condition
    assert words in found.detail
    assert normal(sandbox).condition is Condition.OK


def test_a_child_ended_from_outside_is_not_the_sources_fault(sandbox: Sandbox) -> None:
    class Deadly(Sources):
        def read(self, path: str) -> str | None:
            sandbox.abort()
            return super().read(path)

    state = sandbox.probe(Deadly(), PLANS)
    assert state.pools[PoolKind.NORMAL].condition is Condition.UNTESTABLE
    assert "something else ends the process that runs it with signal 9" in state.untestable
    assert normal(sandbox).condition is Condition.OK


def test_sources_that_cannot_be_read_are_the_hosts_fault(sandbox: Sandbox) -> None:
    class Unreadable(Sources):
        def read(self, path: str) -> str | None:
            raise OSError("disk on fire")

    with pytest.raises(InfrastructureError, match="of tree of the test cannot be read"):
        sandbox.probe(Unreadable(), PLANS)
    assert normal(sandbox).condition is Condition.OK


def test_waiting_for_ever_ends_too() -> None:
    with Sandbox(Limits(wall_seconds=0.5)) as impatient:
        found = normal(impatient, "import time; time.sleep(3600)")
        assert found.condition is Condition.TIMED_OUT
        assert normal(impatient).condition is Condition.OK


@pytest.mark.parametrize(
    "extra",
    [
        "open('written.txt', 'w').close()",
        "open({path!r}, 'a').close()",
        "import os; os.remove({path!r})",
        "import os; os.mkdir('made')",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.fork()",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_files_processes_and_network_are_out_of_reach_and_nobodys_fault(
    sandbox: Sandbox, tmp_path: Path, extra: str
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    found = normal(sandbox, extra.format(path=str(file)))
    assert found.condition is Condition.UNTESTABLE
    assert "is not allowed here" in found.detail
    assert file.read_text() == "kept"


def test_printing_does_not_get_between_the_messages(sandbox: Sandbox) -> None:
    extra = "print('x' * 100000); import sys; sys.stdout.flush(); sys.stderr.write('x')"
    assert normal(sandbox, extra).condition is Condition.OK
    assert normal(sandbox, "import os; os.write(1, b'garbage')").condition is Condition.OK


def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with Sandbox() as fresh:
        found = normal(fresh, "import os; raise ValueError(sorted(os.environ.items()))")
    assert "PATH" in found.detail
    for word in ("MY_API_TOKEN", "secret", "PYTHONPATH", os.environ["HOME"] + "'"):
        assert word not in found.detail


def test_one_child_serves_many(sandbox: Sandbox) -> None:
    # Each answer is one process's: what an earlier tree left behind would show.
    asked = "import sys; sys.seen = getattr(sys, 'seen', 0) + 1; raise ValueError(sys.seen)"
    first, second = (normal(sandbox, asked).detail for _ in range(2))
    assert first.replace("1.", "2.") == second


def test_a_python_without_torch_is_the_hosts_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(limited_child, "_START", "raise SystemExit(1)")
    with Sandbox() as broken, pytest.raises(InfrastructureError, match="does not start"):
        broken.probe(Sources(), PLANS)
