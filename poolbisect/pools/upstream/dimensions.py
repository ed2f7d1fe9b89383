"""Evaluate the first dimension of a buffer against a real pool, without executing its file.

Only arithmetic, attributes of the pool and its tensors, and names that lead to those are
understood. Anything else is refused: a guessed row count would be worse than none.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from poolbisect.pools.upstream.allocations import Allocation
from poolbisect.pools.upstream.inlining import inlined

POOLS = frozenset({"req_to_token_pool"})
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "int": int,
    "len": len,
    "tuple": tuple,
    "list": list,
    "Size": tuple,
}
_TENSOR_METHODS = frozenset({"size", "numel", "dim"})


class PoolAccessError(Exception):
    """Upstream's own pool raised when asked for a part of itself; `__cause__` is what it raised."""


class UnreadableError(Exception):
    """An expression beyond this evaluator; the message is its source text."""


def first_dimension(allocation: Allocation, pool: object) -> tuple[int, str]:
    """The rows an allocation makes, and the expression for them with names inlined.

    `pool` is upstream's own pool object.

    Raises:
        PoolAccessError: the pool has no such part, or raised when asked for it.
        UnreadableError: the rows cannot be told from the pool alone.
    """
    found = [
        _rows(form, allocation, pool)
        for form in inlined(allocation.shape, allocation.parents, POOLS)
    ]
    if len({rows for rows, _ in found}) != 1:
        raise UnreadableError(f"{ast.unparse(allocation.shape)}, which depends on a condition")
    return found[-1]


def _rows(shape: ast.expr, allocation: Allocation, pool: object) -> tuple[int, str]:
    dimension = _first_element(shape)
    try:
        value = _value(dimension, pool)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnreadableError(ast.unparse(dimension)) from error
    text = ast.unparse(dimension)
    if isinstance(value, torch.Tensor) and allocation.copies_shape:
        value, text = value.shape, f"{text}.shape"
    if isinstance(value, tuple | list) and value:
        value, text = value[0], f"{text}[0]"
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableError(ast.unparse(shape))
    return value, text


def _first_element(shape: ast.expr) -> ast.expr:
    """The first entry of a shape that is spelt out, else the shape as it stands."""
    match shape:
        case ast.Tuple(elts=[first, *_]) | ast.List(elts=[first, *_]):
            return _first_element(first)
        case ast.Starred(value=inner):
            return _first_element(inner)
        case ast.BinOp(left=ast.Tuple() | ast.List() as left, op=ast.Add()):
            return _first_element(left)
        case _:
            return shape


def _value(node: ast.expr, pool: object) -> Any:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in POOLS:
            return pool
        case ast.Constant(value=int() as value):
            return value
        case ast.Attribute(value=base, attr=name) if not name.startswith("__"):
            return _part(_value(base, pool), name)
        case ast.Subscript(value=base, slice=index):
            return _value(base, pool)[_index(index, pool)]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(_value(element, pool) for element in elements)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, pool), _value(right, pool))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, pool)
        case ast.IfExp(body=body, orelse=orelse):
            value, other = _value(body, pool), _value(orelse, pool)
            if value == other:
                return value
        case ast.Call(func=function, args=arguments, keywords=[]):
            return _called(node, function, arguments, pool)
        case _:
            pass
    raise UnreadableError(ast.unparse(node))


def _called(node: ast.expr, function: ast.expr, arguments: list[ast.expr], pool: object) -> Any:
    match function, arguments:
        case ast.Name(id="getattr"), [base, ast.Constant(value=str() as name), *default] if len(
            default
        ) <= 1 and not name.startswith("__"):
            owner = _value(base, pool)
            if default and not hasattr(owner, name):
                return _value(default[0], pool)
            return _part(owner, name)
        case ((ast.Name(id=name) | ast.Attribute(attr=name)), _) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument, pool) for argument in arguments))
        case ast.Attribute(value=base, attr=name), _:
            owner = _value(base, pool)
            if isinstance(owner, torch.Tensor) and name in _TENSOR_METHODS:
                return getattr(owner, name)(*(_value(argument, pool) for argument in arguments))
            if owner is pool and not arguments:
                return _part(owner, name, called=True)
        case _:
            pass
    raise UnreadableError(ast.unparse(node))


def _part(owner: object, name: str, called: bool = False) -> Any:
    try:
        return getattr(owner, name)() if called else getattr(owner, name)
    except Exception as error:
        raise PoolAccessError(name) from error


def _index(node: ast.expr, pool: object) -> Any:
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else _value(part, pool) for part in parts))
    return _value(node, pool)
