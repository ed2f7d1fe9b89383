"""The row counts that upstream's own consumers of request slots would allocate."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from poolbisect.errors import NotApplicableError
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.upstream.allocations import allocations, assigned_values, is_built_elsewhere
from poolbisect.pools.upstream.dimensions import (
    POOLS,
    PoolAccessError,
    UnreadableError,
    first_dimension,
)
from poolbisect.pools.upstream.faults import Guesses, StubGap, judged
from poolbisect.pools.upstream.slicing import Slicer

# Where each buffer usually is; it is looked for by name when it is not there.
USUAL_PATHS = {
    "req_to_hidden_states_pool": "sglang/srt/speculative/multi_layer_eagle_worker_v2.py",
    "token_table": "sglang/srt/model_executor/model_runner.py",
}


@dataclass(frozen=True, slots=True)
class ConsumerRows:
    """What a consumer allocates: its first dimension, and where that stands in the sources."""

    rows: int
    expression: str
    file: str
    line: int


def consumer_rows(
    buffer: str, pool: object, tree: SourceTree, slicer: Slicer, guesses: Guesses
) -> ConsumerRows:
    """The rows of `buffer` that the tree's own consumer allocates for upstream's `pool` object.

    Where several places allocate a buffer of that name, the smallest counts: one that is too
    short is one too many. Those that have nothing to do with the pool do not count.

    Raises:
        NotApplicableError: the tree has no such consumer.
        SubjectFault: its expression fails on upstream's own pool.
        StubGap: its rows cannot be read from the pool.
    """
    for paths in _places(buffer, tree):
        found: list[ConsumerRows] = []
        unread: list[str] = []
        for path in paths:
            parsed = slicer.parsed(path, mentioning=buffer)
            if parsed is None:
                continue
            for allocation in allocations(parsed.tree, buffer):
                try:
                    rows, expression = first_dimension(allocation, pool)
                except PoolAccessError as error:
                    where = f"the size of {buffer} ({path}, line {allocation.line})"
                    with judged(tree.name, where, guesses):
                        raise error.__cause__ or error from None
                except UnreadableError as error:
                    unread.append(f"{error} ({path}, line {allocation.line})")
                else:
                    found.append(ConsumerRows(rows, expression, path, allocation.line))
            unread += [
                f"{ast.unparse(value)} ({path}, line {value.lineno})"
                for _, value in assigned_values(parsed.tree, buffer)
                if is_built_elsewhere(value)
                and (path in USUAL_PATHS.values() or _names_pool(value))
            ]
        if found:
            return min(found, key=lambda consumer: consumer.rows)
        if unread:
            raise StubGap(
                f"{tree.name} cannot be tested: the rows of {buffer} are given by {unread[0]}, "
                "which the request pool alone does not tell."
            )
    raise NotApplicableError(
        f"{tree.name} allocates no {buffer}, so there is no consumer of that name to check."
    )


def _places(buffer: str, tree: SourceTree) -> Iterator[list[str]]:
    usual = USUAL_PATHS.get(buffer)
    if usual is not None:
        yield [usual]
    yield [path for path in tree.find(buffer) if path != usual]


def _names_pool(value: ast.expr) -> bool:
    return any(name in ast.unparse(value) for name in POOLS)
