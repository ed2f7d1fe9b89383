"""Find where a source file allocates a named buffer, and the expression that holds its shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from poolbisect.pools.upstream.inlining import Parents

# PyTorch's allocating functions and tensor methods, whose first argument is the shape.
_ALLOCATORS = frozenset(
    {"empty", "zeros", "ones", "full", "rand", "randn", "empty_strided"}
    | {"new_empty", "new_zeros", "new_ones", "new_full"}
)
_COPY_SHAPE = frozenset({"empty_like", "zeros_like", "ones_like", "full_like"})
_SHAPE_KEYWORDS = ("size", "shape")


@dataclass(frozen=True, slots=True)
class Allocation:
    """One assignment of a new tensor to a buffer.

    `shape` is the shape, its first dimension, or with `copies_shape` the tensor whose shape is
    taken; `parents` are the nodes around it, outermost first, the assignment itself last.
    """

    line: int
    shape: ast.expr
    copies_shape: bool
    parents: Parents


def allocations(tree: ast.Module, buffer: str) -> Iterator[Allocation]:
    """Every allocation that a file assigns to `buffer`, a variable or an attribute of that name."""
    for parents, value in assigned_values(tree, buffer):
        found = _allocation(value)
        if found is not None:
            shape, copies_shape = found
            yield Allocation(parents[-1].lineno, shape, copies_shape, parents)  # type: ignore[attr-defined]


@lru_cache(maxsize=128)
def assigned_values(tree: ast.Module, name: str) -> tuple[tuple[Parents, ast.expr], ...]:
    """Every value assigned to `name` or to an attribute `name`, with the nodes around it."""
    return tuple(_assigned_values(tree, name))


def _assigned_values(tree: ast.Module, name: str) -> Iterator[tuple[Parents, ast.expr]]:
    stack: list[Parents] = [(tree,)]
    while stack:
        parents = stack.pop()
        match parents[-1]:
            case ast.Assign(targets=targets, value=value):
                if any(_last_name(target) == name for target in targets):
                    yield parents, value
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                if _last_name(target) == name:
                    yield parents, value
            case _:
                children = ast.iter_child_nodes(parents[-1])
                stack += [
                    (*parents, child)
                    for child in reversed(list(children))
                    if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
                ]


def is_built_elsewhere(value: ast.expr) -> bool:
    """Whether an assigned value is the result of a call that is no allocation in sight."""
    return isinstance(value, ast.Call) and _allocation(value) is None


def _last_name(target: ast.expr) -> str | None:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _allocation(value: ast.expr) -> tuple[ast.expr, bool] | None:
    """(the expression with the shape, whether it is a tensor whose shape is copied)."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return _allocation(body) or _allocation(orelse)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[tensor, *_]) if (
            name in _COPY_SHAPE
        ):
            return tensor, True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _ALLOCATORS:
            for keyword in value.keywords:
                if keyword.arg in _SHAPE_KEYWORDS:
                    return keyword.value, False
            return (value.args[0], False) if value.args else None
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner)):
            return _allocation(inner)  # a method of the new tensor, such as `.to(device)`
        case ast.Call(args=[ast.Call() as inner, *_]):
            return _allocation(inner)  # something wrapped around it, such as a parameter
        case _:
            return None
