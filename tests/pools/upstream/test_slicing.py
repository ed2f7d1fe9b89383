"""Pools are found wherever they are, and made of real parts where those decide the behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from poolbisect.errors import NotApplicableError
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.upstream import load_upstream, slot_range

MakeTree = Callable[[Mapping[str, str]], SourceTree]
MakePoolTree = Callable[[str], SourceTree]

USUAL = "sglang/srt/mem_cache/memory_pool.py"
PLAIN = """
    import torch
    class ReqToTokenPool:
        def __init__(self, size, max_context_len, device):
            self.size, self.max_context_len, self.device = size, max_context_len, device
            self.req_to_token = torch.zeros((size + 1, max_context_len), dtype=torch.int32)
            self.free_slots = list(range(1, size + 1))
        def alloc(self, reqs): return None
        def free(self, req): pass
"""


def test_a_class_that_moved_is_found_by_its_name(tree: MakeTree) -> None:
    moved = {
        USUAL: "from sglang.srt.mem_cache.pools.request import ReqToTokenPool\n",
        "sglang/srt/mem_cache/pools/request.py": PLAIN,
        "sglang/srt/other.py": "class ReqToTokenPoolOfAnother: pass\n",
    }
    pool = load_upstream(tree(moved)).make_pool(8, 4)
    assert slot_range(pool).largest == 8


def test_a_tree_without_the_class_is_not_applicable(tree: MakeTree) -> None:
    with pytest.raises(NotApplicableError, match="tree of the test has no class ReqToTokenPool"):
        load_upstream(tree({USUAL: "class Other: pass\n"}))
    with pytest.raises(NotApplicableError):
        load_upstream(tree({}))


def test_a_tree_without_the_decode_pool_still_has_the_other(tree: MakeTree) -> None:
    code = load_upstream(tree({USUAL: PLAIN}))
    assert code.make_pool(4, 4).size == 4
    with pytest.raises(NotApplicableError, match="DecodeReqToTokenPool"):
        code.make_pool(4, 4, pre_alloc_size=2)


def test_the_decode_pool_is_made_when_a_pre_alloc_size_is_given(tree: MakeTree) -> None:
    decode = PLAIN.replace("class ReqToTokenPool", "class DecodeReqToTokenPool").replace(
        "max_context_len, device):", "max_context_len, device, pre_alloc_size):"
    )
    decode = decode.replace("size + 1", "size + pre_alloc_size + 1")
    files = {USUAL: PLAIN, "sglang/srt/disaggregation/decode.py": decode}
    pool = load_upstream(tree(files)).make_pool(4, 4, pre_alloc_size=3)
    assert (pool.size, slot_range(pool).largest, slot_range(pool).rows) == (4, 7, 8)


def test_bases_functions_and_constants_of_the_sources_are_real(tree: MakeTree) -> None:
    files = {
        USUAL: """
            from __future__ import annotations
            import torch
            from sglang.srt.mem_cache.base import Base as Root
            from sglang.srt.mem_cache import Counter
            from sglang.srt.mem_cache.sizing import padded
            PADDING = 2
            class Middle(Root):
                def alloc(self, reqs: list[NowhereDefined]): return None
            class ReqToTokenPool(Middle):
                def __init__(self, size: int, max_context_len: int, device: NotThere | int):
                    super().__init__(size)
                    self.max_context_len, self.device = max_context_len, device
                    self.free_slots = Counter(PADDING, padded(size)).numbers()
                    self.req_to_token = torch.zeros((padded(size), 1), dtype=torch.int32)
        """,
        "sglang/srt/mem_cache/base.py": """
            class Base:
                def __init__(self, size): self.size = size
                def free(self, req): pass
        """,
        "sglang/srt/mem_cache/__init__.py": "from .counting import Counter\n",
        "sglang/srt/mem_cache/counting.py": """
            from dataclasses import dataclass
            @dataclass(frozen=True)
            class Counter:
                start: int
                stop: int
                def numbers(self): return list(range(self.start, self.stop))
        """,
        "sglang/srt/mem_cache/sizing.py": """
            _EXTRA = 3
            def padded(size): return size + _EXTRA
        """,
    }
    pool = load_upstream(tree(files)).make_pool(4, 1)
    assert pool.free_slots == [2, 3, 4, 5, 6]


def test_platform_and_memory_saver_are_those_of_a_plain_cpu(pool_tree: MakePoolTree) -> None:
    text = """
        import torch
        import not_installed_anywhere
        from sglang.srt.utils import is_npu, cpu_has_amx_support
        from sglang.srt.utils.torch_memory_saver_adapter import TorchMemorySaverAdapter
        _is_npu = is_npu()
        if _is_npu:
            import torch_npu
        class ReqToTokenPool:
            def __init__(self, size, max_context_len, device, enable_memory_saver):
                from sglang.srt.distributed import where_it_runs
                if _is_npu or cpu_has_amx_support():
                    raise RuntimeError("another platform")
                with TorchMemorySaverAdapter.create(enable=enable_memory_saver).region("kv"):
                    self.req_to_token = torch.zeros((size, 1), dtype=torch.int32)
                self.size, self.max_context_len, self.device = size, max_context_len, device
                self.free_slots = list(range(size))
                where_it_runs.report(size)
            def alloc(self, reqs): return None
            def free(self, req): pass
    """
    assert slot_range(load_upstream(pool_tree(text)).make_pool(4, 1)).largest == 3


def test_a_dataclass_inside_a_pool_can_be_made(pool_tree: MakePoolTree) -> None:
    text = """
        import torch
        from dataclasses import dataclass, field
        class ReqToTokenPool:
            @dataclass(kw_only=True)
            class State:
                rows: int
                slots: list[int] = field(default_factory=list)
            @dataclass(kw_only=True)
            class Speculative(State):
                extra: torch.Tensor
            def __init__(self, size, max_context_len, device):
                self.state = self.Speculative(rows=size, extra=torch.zeros(1))
                self.size, self.max_context_len, self.device = size, max_context_len, device
                self.req_to_token = torch.zeros((self.state.rows, 1), dtype=torch.int32)
                self.free_slots = list(range(size))
            def alloc(self, reqs): return None
            def free(self, req): pass
    """
    assert load_upstream(pool_tree(text)).make_pool(2, 1).size == 2


def test_two_trees_do_not_share_anything(tree: MakeTree) -> None:
    a = load_upstream(tree({USUAL: PLAIN})).make_pool(4, 4)
    b = load_upstream(tree({USUAL: PLAIN.replace("size + 1", "size + 9")})).make_pool(4, 4)
    assert (slot_range(a).rows, slot_range(b).rows) == (5, 13)


def test_setting_an_attribute_at_top_level_does_not_hide_the_class(tree: MakeTree) -> None:
    files = {
        USUAL: PLAIN + "\n    ReqToTokenPool.another_attribute = False\n",
    }
    assert slot_range(load_upstream(tree(files)).make_pool(4, 4)).largest == 4


def test_what_upstream_logs_is_not_shown(
    pool_tree: MakePoolTree, caplog: pytest.LogCaptureFixture
) -> None:
    text = PLAIN.replace(
        "import torch", "import logging, torch\n    log = logging.getLogger(__name__)"
    )
    text = text.replace("self.free_slots", "log.warning('capping'); self.free_slots")
    load_upstream(pool_tree(text)).make_pool(4, 4)
    assert caplog.records == []
