"""The rows a consumer allocates are read from its source and evaluated on the real pool."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping

import pytest

from poolbisect.errors import NotApplicableError
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.upstream import ConsumerRows, StubGap, SubjectFault, load_upstream

MakeTree = Callable[[Mapping[str, str]], SourceTree]
BUFFER = "req_to_hidden_states_pool"
WORKER = "sglang/srt/speculative/multi_layer_eagle_worker_v2.py"
POOLS = {
    "sglang/srt/mem_cache/memory_pool.py": """
        import torch
        class ReqToTokenPool:
            def __init__(self, size, max_context_len, device):
                self.size, self.max_context_len, self.device = size, max_context_len, device
                self.req_to_token = torch.zeros((size + 1, max_context_len), dtype=torch.int32)
                self.free_slots = list(range(1, size + 1))
            def available_size(self): return len(self.free_slots)
            def alloc(self, reqs): return None
            def free(self, req): pass
    """
}


def worker(body: str) -> str:
    head = "class Worker:\n    def __init__(self, steps, req_to_token_pool, other):\n"
    return head + textwrap.indent(textwrap.dedent(body), " " * 8)


def rows(tree: MakeTree, files: Mapping[str, str], buffer: str = BUFFER) -> ConsumerRows:
    code = load_upstream(tree(POOLS | dict(files)))
    return code.consumer_rows(buffer, code.make_pool(64, 128))


TOO_SHORT, ENOUGH = 64, 65


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("torch.empty((self.req_to_token_pool.size, steps - 1, self.hidden))", TOO_SHORT),
        ("torch.empty(self.req_to_token_pool.size, steps, dtype=torch.int32)", TOO_SHORT),
        ("torch.zeros(size=(self.req_to_token_pool.size + 1, steps))", ENOUGH),
        ("torch.full((self.req_to_token_pool.size, steps), -1)", TOO_SHORT),
        ("torch.full(fill_value=0.0, size=[self.req_to_token_pool.size, steps])", TOO_SHORT),
        ("torch.zeros(self.req_to_token_pool.size)", TOO_SHORT),
        ("torch.empty((req_to_token_pool.req_to_token.shape[0], steps))", ENOUGH),
        ("torch.empty((self.a.b.req_to_token_pool.req_to_token.size(0), 2))", ENOUGH),
        ("torch.empty((len(self.req_to_token_pool.req_to_token), 2))", ENOUGH),
        ("torch.empty(self.req_to_token_pool.req_to_token.shape)", ENOUGH),
        ("torch.empty_like(self.req_to_token_pool.req_to_token)", ENOUGH),
        ("torch.empty((max(self.req_to_token_pool.size, 8) // 2 * 2, 2))", TOO_SHORT),
        ("torch.empty((self.req_to_token_pool.available_size(), 2))", TOO_SHORT),
        ("torch.empty((self.req_to_token_pool.size,) + other)", TOO_SHORT),
        ("torch.empty((getattr(self.req_to_token_pool, 'rows', 65), 2))", ENOUGH),
        ("torch.empty((self.req_to_token_pool.size, 2), device='meta').to(self.device)", TOO_SHORT),
        ("torch.nn.Parameter(torch.empty((self.req_to_token_pool.size, 2)))", TOO_SHORT),
        ("torch.empty((self.req_to_token_pool.size, 2)) if steps > 1 else None", TOO_SHORT),
        ("self.weight.new_zeros((self.req_to_token_pool.size, 2))", TOO_SHORT),
    ],
)
def test_every_way_to_write_the_shape_is_read(tree: MakeTree, value: str, expected: int) -> None:
    found = rows(tree, {WORKER: worker(f"self.{BUFFER} = {value}")})
    assert (found.rows, found.file, found.line) == (expected, WORKER, 3)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pool = self.req_to_token_pool\nn = pool.size\nself.BUF = torch.empty((n, 2))", 64),
        ("n = req_to_token_pool.size\nn = n + 1\nself.BUF = torch.empty((n, 2))", 65),
        ("n = req_to_token_pool.size\nn += 1\nself.BUF = torch.empty(n, 2)", 65),
        ("shape = (req_to_token_pool.size, 2)\nself.BUF = torch.empty(shape)", 64),
        ("shape = [req_to_token_pool.size, 2]\nself.BUF = torch.empty(*shape)", 64),
        ("n, m = req_to_token_pool.size, 2\nself.BUF = torch.empty((n, m))", 64),
        ("self.n = req_to_token_pool.size\nself.BUF = torch.empty((self.n, 2))", 64),
        ("self.BUF = None\nif other:\n    self.BUF = torch.empty((req_to_token_pool.size, 2))", 64),
        ("self.BUF: object = torch.empty((req_to_token_pool.size, 2))", 64),
        ("BUF = torch.empty((req_to_token_pool.size, 2))\nself.keep(BUF)", 64),
        (
            "if other:\n    n = 64\nelse:\n    n = req_to_token_pool.size\n"
            "self.BUF = torch.empty((n, 2))",
            64,
        ),
        ("n = 5\nif other:\n    n = 65\n    self.BUF = torch.empty((n, 2))", 65),
    ],
)
def test_local_names_are_followed(tree: MakeTree, body: str, expected: int) -> None:
    assert rows(tree, {WORKER: worker(body.replace("BUF", BUFFER))}).rows == expected


def test_names_from_other_methods_and_the_top_of_the_file_are_followed(tree: MakeTree) -> None:
    text = f"""
        EXTRA = 1
        class Worker:
            def __init__(self, req_to_token_pool):
                if req_to_token_pool:
                    self.slots = req_to_token_pool.size
            def init_buffers(self):
                self.{BUFFER} = torch.empty((self.slots + EXTRA, 2))
    """
    assert rows(tree, {WORKER: text}).rows == 65


def test_the_expression_is_shown_with_its_names_inlined(tree: MakeTree) -> None:
    body = f"pool = self.req_to_token_pool\nn = pool.size\nself.{BUFFER} = torch.empty((n, 2))"
    found = rows(tree, {WORKER: worker(body)})
    assert found == ConsumerRows(64, "self.req_to_token_pool.size", WORKER, 5)


def test_a_consumer_that_moved_is_found_by_its_name(tree: MakeTree) -> None:
    elsewhere = "sglang/srt/speculative/newer/worker.py"
    text = worker(f"self.{BUFFER} = torch.empty((req_to_token_pool.size, 2))")
    files = {elsewhere: text, WORKER: "class Worker: pass\n", "sglang/srt/use.py": f"x.{BUFFER}\n"}
    assert rows(tree, files).file == elsewhere


def test_the_shortest_of_several_counts_and_unrelated_ones_do_not(tree: MakeTree) -> None:
    files = {
        "sglang/srt/a.py": worker("token_table = torch.empty((req_to_token_pool.size + 1, 2))"),
        "sglang/srt/b.py": worker("self.token_table = torch.empty((req_to_token_pool.size, 2))"),
        "sglang/srt/c.py": worker("token_table = torch.empty((other.vocabulary, 2))"),
        "sglang/srt/d.py": worker("self.token_table = other.token_table"),
    }
    assert rows(tree, files, "token_table").file == "sglang/srt/b.py"


@pytest.mark.parametrize("files", [{}, {WORKER: worker(f"self.{BUFFER} = other.{BUFFER}")}])
def test_a_tree_without_the_consumer_is_not_applicable(
    tree: MakeTree, files: Mapping[str, str]
) -> None:
    with pytest.raises(NotApplicableError, match=f"tree of the test allocates no {BUFFER}"):
        rows(tree, files)


@pytest.mark.parametrize(
    "body",
    [
        "self.BUF = torch.empty((other.max_running_requests, 2))",
        "self.BUF = torch.empty((steps, 2))",
        "self.BUF = torch.empty((int('64'), 2))",
        "self.BUF = torch.empty((req_to_token_pool.__class__, 2))",
        "n = 64\nif other:\n    n = req_to_token_pool.size + 1\nself.BUF = torch.empty((n, 2))",
        "self.BUF = self.make_buffer(req_to_token_pool.size)",
        "self.BUF = torch.empty(())",
        "self.BUF = torch.empty((req_to_token_pool.size / 2, 2))",
    ],
)
def test_rows_that_the_pool_does_not_tell_are_ours(tree: MakeTree, body: str) -> None:
    with pytest.raises(StubGap, match=BUFFER):
        rows(tree, {WORKER: worker(body.replace("BUF", BUFFER))})


def test_a_part_that_upstreams_pool_lacks_is_its_own_fault(tree: MakeTree) -> None:
    body = f"self.{BUFFER} = torch.empty((req_to_token_pool.not_there, 2))"
    with pytest.raises(SubjectFault, match="not_there"):
        rows(tree, {WORKER: worker(body)})


def test_nothing_of_the_consumers_file_is_executed(tree: MakeTree) -> None:
    text = "raise SystemExit\n" + worker(
        f"raise SystemExit\nself.{BUFFER} = torch.empty((req_to_token_pool.size, stop()))"
    )
    assert rows(tree, {WORKER: text}).rows == 64
