"""Small source trees in the layout of upstream's, written for these tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping

import pytest

from poolbisect.history.source_tree import SourceTree

POOL_PATH = "sglang/srt/mem_cache/memory_pool.py"

COUNTING = """
    from sglang.srt.utils.torch_memory_saver_adapter import TorchMemorySaverAdapter
    from sglang.srt.constants import KV_REGION
    import torch

    class ReqToTokenPool:
        def __init__(self, size: int, max_context_len: int, device: str, enable_memory_saver: bool):
            saver = TorchMemorySaverAdapter.create(enable=enable_memory_saver)
            self.size, self.max_context_len, self.device = size, max_context_len, device
            with saver.region(KV_REGION):
                self.req_to_token = torch.zeros((size, max_context_len), dtype=torch.int32)
            self.clear()

        def available_size(self):
            return len(self.free_slots)

        def write(self, indices, values):
            self.req_to_token[indices] = values

        def alloc(self, need_size: int):
            if need_size > len(self.free_slots):
                return None
            taken, self.free_slots = self.free_slots[:need_size], self.free_slots[need_size:]
            return taken

        def free(self, free_index):
            self.free_slots += [free_index] if isinstance(free_index, int) else free_index

        def clear(self):
            self.free_slots = list(range(self.size))
"""

TAKING_REQUESTS = """
    import torch

    class ReqToTokenPool:
        def __init__(self, size: int, max_context_len: int, device: str, enable_memory_saver: bool):
            self.size, self.max_context_len, self.device = size, max_context_len, device
            self.req_to_token = torch.zeros((size, max_context_len), dtype=torch.int32)
            self.clear()

        def available_size(self):
            return len(self.free_slots)

        def write(self, indices, values):
            self.req_to_token[indices] = values

        def alloc(self, reqs: list[Req]):
            if not any(r.is_dllm() for r in reqs):
                kept = [r for r in reqs if r.req_pool_idx is not None]
                assert all(r.inflight_middle_chunks > 0 or r.kv_committed_len > 0 for r in kept)
            new = [r for r in reqs if r.req_pool_idx is None]
            if len(new) > len(self.free_slots):
                return None
            for r in new:
                r.req_pool_idx = self.free_slots.pop(0)
                r.mark_of_the_pool = r.req_pool_idx
            return [r.req_pool_idx for r in reqs]

        def free(self, req: Req):
            assert req.mark_of_the_pool == req.req_pool_idx
            self.free_slots.append(req.req_pool_idx)
            req.req_pool_idx = None

        def clear(self):
            self.free_slots = list(range(self.size))
"""

TAKING_BOOKKEEPING = TAKING_REQUESTS.replace(
    "r.inflight_middle_chunks > 0 or r.kv_committed_len > 0", "r.kv.kv_allocated_len > 0"
)
for field in ("r.req_pool_idx is not None", "req.req_pool_idx", "r.req_pool_idx"):
    target = "r.kv.holds_kv" if "not None" in field else field.replace(".", ".kv.")
    TAKING_BOOKKEEPING = TAKING_BOOKKEEPING.replace(field, target)

ERAS = {
    "counting": COUNTING,
    "requests": TAKING_REQUESTS,
    "bookkeeping": TAKING_BOOKKEEPING,
}


class Sources(SourceTree):
    """A tree that lies in a mapping of paths to texts."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {path: textwrap.dedent(text) for path, text in files.items()}

    @property
    def name(self) -> str:
        return "tree of the test"

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        return sorted(p for p, t in self._files.items() if p.startswith(under) and text in t)


@pytest.fixture
def tree() -> Callable[[Mapping[str, str]], SourceTree]:
    """Make a tree from paths and texts; texts are dedented."""
    return Sources


@pytest.fixture
def pool_tree() -> Callable[[str], SourceTree]:
    """Make a tree that holds a text in the place of upstream's pools."""
    return lambda text: Sources({POOL_PATH: text})


@pytest.fixture(params=list(ERAS))
def era_tree(request: pytest.FixtureRequest) -> SourceTree:
    """A tree for each way in which upstream's pools have been called."""
    return Sources({POOL_PATH: ERAS[request.param]})
