"""Replace local names in an expression by what was assigned to them before, as far as that goes."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Sequence

Parents = tuple[ast.AST, ...]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEEPEST = 20
_MOST_ALTERNATIVES = 16


def inlined(
    expression: ast.expr, parents: Parents, keep: frozenset[str], depth: int = 0
) -> list[ast.expr]:
    """The forms of an expression with its names replaced; several when branches set a name.

    `parents` are the nodes around the statement that holds the expression, outermost first and
    that statement last. A name or dotted name that ends in one of `keep` is left as it stands,
    and so is what nothing in the file assigns.
    """
    if _last_name(expression) in keep or depth > _DEEPEST:
        return [expression]
    if isinstance(expression, ast.Name | ast.Attribute):
        forms = [
            form
            for value, where in _reaching(ast.unparse(expression), parents)
            for form in inlined(value, where, keep, depth + 1)
        ]
        if forms:
            return forms[:_MOST_ALTERNATIVES]
    return _with_children_inlined(expression, parents, keep, depth)


def _with_children_inlined(
    expression: ast.expr, parents: Parents, keep: frozenset[str], depth: int
) -> list[ast.expr]:
    places: list[tuple[str, int | None]] = []
    choices: list[list[ast.expr]] = []
    for field, value in ast.iter_fields(expression):
        if isinstance(expression, ast.Call) and field == "func" and isinstance(value, ast.Name):
            continue  # a function's name is not data
        children = value if isinstance(value, list) else [value]
        for position, child in enumerate(children):
            if isinstance(child, ast.expr):
                places.append((field, position if isinstance(value, list) else None))
                choices.append(inlined(child, parents, keep, depth))
    forms = []
    for chosen in itertools.islice(itertools.product(*choices), _MOST_ALTERNATIVES):
        form = copy.copy(expression)
        for (field, index), child in zip(places, chosen, strict=True):
            if index is None:
                setattr(form, field, child)
            else:
                items = list(getattr(form, field))
                items[index] = child
                setattr(form, field, items)
        forms.append(form)
    return forms


def _last_name(expression: ast.expr) -> str | None:
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _reaching(target: str, parents: Parents) -> Iterator[tuple[ast.expr, Parents]]:
    """What may have been assigned to `target` when the statement at the end of `parents` runs.

    The nearest earlier assignment on the way to the statement ends the search; assignments in
    branches beside that way are alternatives to it.
    """
    for level in range(len(parents) - 1, 0, -1):
        around, inner = parents[level - 1], parents[level]
        for sibling in _before(around, inner):
            where = (*parents[:level], sibling)
            value = _assigned(sibling, target)
            if value is not None:
                yield value, where
                return
            yield from _inside(sibling, where, target)
        if isinstance(around, _FUNCTIONS):
            yield from _outside_function(target, around, parents[:level])
            return


def _outside_function(
    target: str, function: ast.AST, around: Parents
) -> Iterator[tuple[ast.expr, Parents]]:
    """Assignments to an attribute in the other methods, or to a name at the top of the file."""
    assert isinstance(function, _FUNCTIONS)
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if any(argument.arg == target for argument in named):
        return
    scope = around[-2] if "." in target and len(around) > 1 else around[0]
    upto = around[: around.index(scope) + 1]
    for statement in getattr(scope, "body", []):
        if statement is function:
            continue
        where = (*upto, statement)
        value = _assigned(statement, target)
        if value is not None:
            yield value, where
        elif "." in target and isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _inside(statement, where, target, into_functions=True)


def _before(around: ast.AST, inner: ast.AST) -> Sequence[ast.stmt]:
    """The statements before `inner` in the block that holds it, the nearest first."""
    for _, block in ast.iter_fields(around):
        if isinstance(block, list) and any(item is inner for item in block):
            position = next(i for i, item in enumerate(block) if item is inner)
            return [item for item in reversed(block[:position]) if isinstance(item, ast.stmt)]
    return []


def _inside(
    statement: ast.AST, where: Parents, target: str, into_functions: bool = False
) -> Iterator[tuple[ast.expr, Parents]]:
    """Assignments in the blocks of a statement, which may or may not have run."""
    if isinstance(statement, ast.ClassDef) or (
        isinstance(statement, _FUNCTIONS) and not into_functions
    ):
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            value = _assigned(child, target) if isinstance(child, ast.stmt) else None
            if value is not None:
                yield value, (*where, child)
            yield from _inside(child, (*where, child), target)


def _assigned(statement: ast.stmt, target: str) -> ast.expr | None:
    """The expression that a simple statement assigns to `target`, or None."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for written in targets:
                if _is_target(written, target):
                    return value
                match written, value:
                    case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                        for name, part in zip(names, values, strict=True):
                            if _is_target(name, target):
                                return part
        case ast.AnnAssign(target=written, value=ast.expr() as value):
            return value if _is_target(written, target) else None
        case ast.AugAssign(target=written, op=op, value=value) if _is_target(written, target):
            return ast.copy_location(ast.BinOp(_loaded(written), op, value), statement)
        case _:
            pass
    return None


def _is_target(written: ast.expr, target: str) -> bool:
    # The last name is compared first because unparsing every target takes long.
    last = _last_name(written)
    return last is not None and target.endswith(last) and ast.unparse(written) == target


def _loaded(target: ast.expr) -> ast.expr:
    loaded = copy.copy(target)
    loaded.ctx = ast.Load()  # type: ignore[attr-defined]
    return loaded
