"""What upstream's code does wrong and what our stand-ins cannot answer are never mixed up."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.upstream import StubGap, SubjectFault, load_upstream

MakePoolTree = Callable[[str], SourceTree]

HEAD = """
import torch
from sglang.srt.environ import envs
from sglang.srt.nowhere import how_many, Unknown, THE_DTYPE
"""
POOL = """
class ReqToTokenPool{base}:
    def __init__(self, size, max_context_len, device):
        self.size, self.max_context_len, self.device = size, max_context_len, device
        self.req_to_token = torch.zeros((size, max_context_len), dtype=torch.int32)
        self.free_slots = list(range(size))
{body}
    def alloc(self, reqs):
        slots = [self.free_slots.pop(0) for _ in reqs]
        for r, slot in zip(reqs, slots):
            r.req_pool_idx = slot
        return slots
    def free(self, req):
        self.free_slots.append(req.req_pool_idx)
"""


@dataclass
class Req:
    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    is_chunked: int = 0


def pool_text(body: str, base: str = "") -> str:
    return HEAD + POOL.format(base=base, body=textwrap.indent(textwrap.dedent(body), " " * 8))


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("raise ValueError('no room')", ValueError),
        ("self.req_to_token[size]", IndexError),
        ("self.not_there", AttributeError),
        ("nowhere_defined", NameError),
        ("assert size > 10", AssertionError),
    ],
)
def test_what_upstreams_class_raises_is_its_own_fault(
    pool_tree: MakePoolTree, body: str, cause: type[Exception]
) -> None:
    with pytest.raises(SubjectFault, match="tree of the test itself fails") as caught:
        load_upstream(pool_tree(pool_text(body))).make_pool(4, 2)
    assert isinstance(caught.value.__cause__, cause)


def test_an_exception_in_use_is_its_own_fault_too(pool_tree: MakePoolTree) -> None:
    pool = load_upstream(pool_tree(pool_text("pass"))).make_pool(2, 2)
    with pytest.raises(SubjectFault, match="alloc raised IndexError"):
        pool.alloc([Req(), Req(), Req()])


@pytest.mark.parametrize(
    ("body", "gap"),
    [
        ("self.size = size + how_many()", "how_many"),
        ("if how_many() > 3: pass", "how_many"),
        ("torch.zeros((how_many(), 2))", "argument"),
        ("torch.zeros(2, dtype=THE_DTYPE)", "argument"),
        ("for _ in envs.ALL: pass", "envs.ALL"),
        ("len(Unknown())", "Unknown"),
        ("Unknown.FIELD + 1", "Unknown.FIELD"),
        ("torch.this_is_not_in_pytorch()", "torch"),
    ],
)
def test_a_question_no_stand_in_can_answer_is_ours(
    pool_tree: MakePoolTree, body: str, gap: str
) -> None:
    with pytest.raises(StubGap, match=gap):
        load_upstream(pool_tree(pool_text(body))).make_pool(4, 2)


def test_upstream_cannot_swallow_an_unanswered_question(pool_tree: MakePoolTree) -> None:
    body = """
        try:
            self.size = how_many() + 1
        except Exception:
            self.size = 0
    """
    with pytest.raises(StubGap):
        load_upstream(pool_tree(pool_text(body))).make_pool(4, 2)


def test_a_failure_after_a_guess_is_not_blamed_on_upstream(pool_tree: MakePoolTree) -> None:
    body = "assert envs.SOMETHING.get(), 'must be set'"
    with pytest.raises(StubGap, match=r"envs\.SOMETHING"):
        load_upstream(pool_tree(pool_text(body))).make_pool(4, 2)


def test_a_harmless_guess_does_not_stop_anything(pool_tree: MakePoolTree) -> None:
    pool = load_upstream(pool_tree(pool_text("if envs.TRACE.get(): print(1)"))).make_pool(4, 2)
    assert pool.alloc([Req()]) == [0]


def test_an_unknown_base_class_makes_failures_ours(pool_tree: MakePoolTree) -> None:
    pool_class = pool_text("self.from_the_base", base="(Unknown)")
    with pytest.raises(StubGap, match="base class Unknown"):
        load_upstream(pool_tree(pool_class)).make_pool(4, 2)


def test_a_constructor_argument_we_do_not_know_is_ours(pool_tree: MakePoolTree) -> None:
    text = pool_text("pass").replace("device):", "device, lanes):")
    with pytest.raises(StubGap, match="lanes"):
        load_upstream(pool_tree(text)).make_pool(4, 2)


def test_sources_this_python_cannot_parse_are_ours(pool_tree: MakePoolTree) -> None:
    with pytest.raises(StubGap, match=r"memory_pool\.py"):
        load_upstream(pool_tree("class ReqToTokenPool:\n  def (:\n"))
