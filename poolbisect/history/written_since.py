"""Since when the sources have held an allocation as it stands: the commit that wrote it.

A fault can be written long before another commit exposes it, so this is not the culprit's date.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from poolbisect.history.commits import PACKAGE_ROOT, CommitTree
from poolbisect.history.repository import Commit, Repository

_SHAPE_KEYWORDS = ("size", "shape")


@dataclass(frozen=True, slots=True)
class Allocation:
    """An assignment of a new tensor: to what name, in which function, with which first dimension.

    `source` is the statement's text. Line numbers, types and devices are no part of its identity.
    """

    name: str
    function: str
    rows: str
    source: str

    def is_in(self, text: str | None) -> bool:
        """Whether a version of a file holds the same allocation."""
        if text is None or self.name not in text:
            return False
        if self.source in text and (not self.function or f"def {self.function}(" in text):
            return True
        return any(
            (other.name, other.function, other.rows) == (self.name, self.function, self.rows)
            for other, _ in _allocations(text)
        )


def written_since(repository: Repository, commit: Commit, path: str, line: int) -> Commit | None:
    """The oldest commit from which on every first parent up to `commit` has the same allocation.

    `path` and `line` (of a SourceTree) are where `commit` has it; renamed and moved files are
    followed. None when there is no allocation.
    """
    tree = CommitTree(repository, commit)
    text = tree.read(path)
    sought = next((a for a, at in _allocations(text or "") if at == line), None)
    if sought is None:
        return None
    while True:
        oldest = _oldest_at(repository, commit, path, sought)
        parent = oldest.parents[:1]
        moved_from = None
        if parent:
            before = CommitTree(repository, parent[0])
            moved_from = next(
                (p for p in before.find(sought.name) if sought.is_in(before.read(p))), None
            )
        if moved_from is None:
            return oldest
        commit, path = before.commit, moved_from


def _oldest_at(repository: Repository, commit: Commit, path: str, sought: Allocation) -> Commit:
    """How far back the allocation is in the file of this path."""
    oldest = commit
    pathspec = f":(top,literal){PACKAGE_ROOT}/{path}"
    for older in repository.commits(["--first-parent", commit.sha, "--", pathspec]):
        if not sought.is_in(CommitTree(repository, older).read(path)):
            break
        oldest = older
    return oldest


def _allocations(text: str) -> Iterator[tuple[Allocation, int]]:
    """Every allocation of a file, and the line it starts on."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.splitlines()
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, function = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                stack.append((child, child.name))
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                stack.append((child, function))
            if isinstance(child, ast.Assign | ast.AnnAssign):
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                rows = _rows(child.value)
                if isinstance(target, ast.Name | ast.Attribute) and rows is not None:
                    name = target.id if isinstance(target, ast.Name) else target.attr
                    source = "\n".join(lines[child.lineno - 1 : child.end_lineno])
                    yield Allocation(name, function, rows, source), child.lineno


def _rows(value: ast.expr | None) -> str | None:
    """The first dimension of the shape that a call is given, as written."""
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Call):
            named = [k.value for k in node.keywords if k.arg in _SHAPE_KEYWORDS]
            shape = next(iter([*named, *node.args]), None)
            if isinstance(shape, ast.Tuple | ast.List) and shape.elts:
                shape = shape.elts[0]
            return None if shape is None else ast.unparse(shape)
    return None
