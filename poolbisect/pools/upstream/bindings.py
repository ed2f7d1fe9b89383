"""What a source file binds at its top level, and how: by definition, assignment or import."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Where an import takes a name from; `attribute` is None for `import module`."""

    module: str
    attribute: str | None
    level: int = 0


@dataclass(frozen=True, slots=True)
class Binding:
    """One top-level name: the statement that binds it, its source when imported.

    `conditional` bindings stand below an `if` or `try`, so that they may not happen at all.
    """

    node: ast.stmt
    source: ImportSource | None = None
    conditional: bool = False


@dataclass(frozen=True)
class FileBindings:
    """A parsed file and its bindings by name."""

    tree: ast.Module
    names: dict[str, Binding]
    has_star_import: bool

    @cached_property
    def constructed(self) -> frozenset[str]:
        """The names that the file calls or derives classes from."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.add(node.func.id)
            elif isinstance(node, ast.ClassDef):
                found |= {base.id for base in node.bases if isinstance(base, ast.Name)}
        return frozenset(found)


@lru_cache(maxsize=64)
def bindings_of(text: str) -> FileBindings:
    """Parse a file; SyntaxError when this Python cannot. The same text is parsed once."""
    tree = ast.parse(text)
    names: dict[str, Binding] = {}
    for name, binding in _bindings(tree.body, conditional=False):
        known = names.get(name)
        if known is None or known.conditional or not binding.conditional:
            names[name] = binding
    star = any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in tree.body)
    return FileBindings(tree, names, star)


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ImportSource]]:
    """The names an import statement binds and where each comes from; a star binds none."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            top = alias.name.split(".")[0]
            yield alias.asname or top, ImportSource(alias.name, None)
        elif alias.name != "*":
            source = ImportSource(node.module or "", alias.name, node.level)
            yield alias.asname or alias.name, source


def _bindings(body: Sequence[ast.stmt], conditional: bool) -> Iterator[tuple[str, Binding]]:
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, Binding(node, conditional=conditional)
            case ast.Import() | ast.ImportFrom():
                for name, source in imported_names(node):
                    yield name, Binding(node, source, conditional)
            case ast.Assign(targets=targets):
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                            yield part.id, Binding(node, conditional=conditional)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name, Binding(node, conditional=conditional)
            case ast.If():
                yield from _bindings([*node.body, *node.orelse], conditional=True)
            case ast.Try():
                handled = [inner for handler in node.handlers for inner in handler.body]
                yield from _bindings([*node.body, *node.orelse, *handled], conditional=True)
                yield from _bindings(node.finalbody, conditional=conditional)
            case ast.With():
                yield from _bindings(node.body, conditional=conditional)
            case _:
                continue
