"""Compile one statement of an upstream file so that it runs without the rest of it."""

from __future__ import annotations
import __future__

import ast
import copy
import types
from functools import lru_cache

from poolbisect.pools.upstream.bindings import ImportSource, imported_names

IMPORT = "__poolbisect_import__"  # what an import inside a function is rewritten to call
_POSTPONED_ANNOTATIONS = __future__.annotations.compiler_flag


@lru_cache(maxsize=512)
def compiled(path: str, node: ast.stmt) -> types.CodeType:
    """Code of a statement: annotations are not evaluated, imports inside it call `IMPORT`.

    The same node, as `bindings_of` gives for the same text, is compiled once.
    """
    sliced = _ImportsInside().visit(copy.deepcopy(node))
    module = ast.fix_missing_locations(ast.Module([sliced], []))
    code: types.CodeType = compile(
        module, path, "exec", flags=_POSTPONED_ANNOTATIONS, dont_inherit=True
    )
    return code


class _ImportsInside(ast.NodeTransformer):
    """Turn the imports inside a definition into assignments from the slicer."""

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [_import_call(node, name, source) for name, source in imported_names(node)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        return [_import_call(node, name, source) for name, source in imported_names(node)]


def _import_call(node: ast.stmt, name: str, source: ImportSource) -> ast.stmt:
    values = (source.module, source.attribute, source.level, name)
    call = ast.Call(ast.Name(IMPORT, ast.Load()), [ast.Constant(value) for value in values], [])
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call), node)
