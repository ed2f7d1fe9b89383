"""The engine must not know which pool it runs on."""

from __future__ import annotations

import ast
from pathlib import Path

import poolbisect.engine
from poolbisect.engine.config import EngineConfig
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Request
from poolbisect.models.llama import LlamaConfig, MimoMiniature
from poolbisect.pools.interface import RequestPool
from poolbisect.pools.shipped import STATES, ShippedPools
from poolbisect.tasks import arithmetic

FILES = sorted(Path(poolbisect.engine.__file__).parent.glob("*.py"))


def test_no_engine_module_imports_a_state_of_the_pools() -> None:
    imported = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module)
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    from_pools = {name for name in imported if name and name.startswith("poolbisect.pools")}
    # `unchecked` is memory without bounds and `mamba_sizing` reads flags; neither is a state.
    assert from_pools == {
        "poolbisect.pools.interface",
        "poolbisect.pools.mamba_sizing",
        "poolbisect.pools.unchecked",
    }
    assert not any("probes" in name or "subject" in name for name in imported if name)


def test_no_engine_code_names_a_state_or_asks_for_a_type() -> None:
    for path in FILES:
        tree = ast.parse(path.read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        strings = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not (names | attributes | strings) & {*STATES, "ShippedPools", "_alloc_size"}, path
        assert not names & {"isinstance", "type", "hasattr"}, path


class _Swapped:
    """The classes of one state with the consumers' row counts of another."""

    def __init__(self, classes: str, rows: str) -> None:
        self._classes, self._rows = ShippedPools(classes), ShippedPools(rows)

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool:
        return self._classes.make_pool(size, max_context_len, device, pre_alloc_size)

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        return self._rows.consumer_rows(buffer, pool)


def test_swapping_classes_and_row_counts_shows_that_only_the_row_counts_matter() -> None:
    model = MimoMiniature(LlamaConfig(vocab_size=arithmetic.VOCAB_SIZE, num_hidden_layers=1))

    def accesses(classes: str, rows: str) -> int:
        config = EngineConfig(max_running_requests=4, dp_size=2)
        engine = Engine(config, model, _Swapped(classes, rows))
        prompt = [arithmetic.BOS, *arithmetic.encode("12+34:")]
        engine.run([Request(str(n), prompt, 6, arithmetic.EOS) for n in range(12)])
        return sum(rank.guard.reads + rank.guard.writes for rank in engine.ranks)

    assert accesses("original", "corrected") == accesses("corrected", "corrected") == 0
    assert accesses("corrected", "original") == accesses("original", "original") > 0
