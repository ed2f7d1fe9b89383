"""Take single definitions out of upstream's sources and execute just those.

Importing upstream's modules pulls in hundreds of modules and wants a GPU stack. A slice holds one
definition and what it names: definitions of the same file, classes that it builds on or
constructs and self-contained functions of other files are real, everything else is a stand-in.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import itertools
import logging
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.upstream.bindings import (
    Binding,
    FileBindings,
    ImportSource,
    bindings_of,
)
from poolbisect.pools.upstream.compiling import IMPORT, compiled
from poolbisect.pools.upstream.faults import Guesses, StubGap, Unanswered
from poolbisect.pools.upstream.free_names import free_names
from poolbisect.pools.upstream.stubs import (
    PoolbisectStub,
    is_placeholder_class,
    placeholder,
    prepared,
)

_REAL_PACKAGES = frozenset({"torch", "numpy", *sys.stdlib_module_names})
_serial = itertools.count()


class _File:
    """One upstream file with the namespace in which its slices are executed."""

    def __init__(self, path: str, bindings: FileBindings) -> None:
        self.path = path
        self.bindings = bindings
        self.names = bindings.names
        self.module = types.ModuleType(f"_poolbisect_slice_{next(_serial)}")
        # What upstream logs while it is examined is no message of this program.
        logging.getLogger(self.module.__name__).disabled = True
        self.namespace = self.module.__dict__


class Slicer:
    """The definitions of one tree of sources, sliced on demand; each is executed once."""

    def __init__(self, tree: SourceTree, guesses: Guesses) -> None:
        self._tree = tree
        self._guesses = guesses
        self._texts: dict[str, str | None] = {}
        self._files: dict[str, _File | None] = {}

    def parsed(self, path: str, mentioning: str = "") -> FileBindings | None:
        """The file at `path`, or None when the tree has no such file or it lacks a text."""
        text = self._text(path)
        if text is None or mentioning not in text:
            return None
        file = self._file(path)
        return None if file is None else file.bindings

    def find_class(self, name: str, usual_path: str) -> str | None:
        """The path of the file that defines a class: where it usually is, or wherever it moved."""
        for path in itertools.chain([usual_path], self._search(f"class {name}")):
            bindings = self.parsed(path, mentioning=f"class {name}")
            if bindings is not None and name in bindings.names:
                binding = bindings.names[name]
                if isinstance(binding.node, ast.ClassDef):
                    return path
        return None

    def take(self, path: str, name: str) -> Any:
        """What the file at `path` binds to `name`, executed; KeyError if it binds no such name."""
        file = self._file(path)
        if file is None:
            raise KeyError(name)
        return self._take(file, name)

    def _search(self, text: str) -> Iterator[str]:
        yield from sorted(self._tree.find(text), key=lambda path: (path.count("/"), path))

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            text = self._text(path)
            self._files[path] = None if text is None else _File(path, self._parsed(path, text))
        return self._files[path]

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._tree.read(path)
        return self._texts[path]

    def _parsed(self, path: str, text: str) -> FileBindings:
        try:
            return bindings_of(text)
        except (SyntaxError, ValueError) as error:
            version = ".".join(map(str, sys.version_info[:2]))
            raise StubGap(
                f"{self._tree.name} cannot be tested: Python {version} cannot parse {path} "
                f"({error})."
            ) from error

    def _take(self, file: _File, name: str) -> Any:
        if name not in file.namespace:
            binding = file.names[name]
            if binding.source is not None:
                value = self._imported(file, name, binding.source, binding.conditional)
                file.namespace[name] = value
            elif isinstance(binding.node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self._execute(file, binding.node)
            else:
                self._assign(file, name, binding)
        return file.namespace[name]

    def _assign(self, file: _File, name: str, binding: Binding) -> None:
        """Bind a top-level variable, unless its value depends on what stand-ins cannot tell."""
        if not binding.conditional:
            try:
                self._execute(file, binding.node)
            except Unanswered:
                file.namespace.pop(name, None)
        file.namespace.setdefault(name, placeholder(name, self._guesses))

    def _execute(self, file: _File, node: ast.stmt) -> None:
        code = compiled(file.path, node)
        at_once, later = free_names(code)
        file.namespace.setdefault(IMPORT, self._importer(file))
        self._provide(file, at_once)
        self._note_unknown_bases(file, node)
        with _registered(file.module):
            exec(code, file.namespace)
        self._provide(file, later)

    def _provide(self, file: _File, names: frozenset[str]) -> None:
        for name in sorted(names):
            if name in file.names:
                self._take(file, name)
            elif file.bindings.has_star_import and not hasattr(builtins, name):
                file.namespace.setdefault(name, placeholder(name, self._guesses))

    def _note_unknown_bases(self, file: _File, node: ast.stmt) -> None:
        for base in getattr(node, "bases", []):
            top = base
            while isinstance(top, ast.Attribute):
                top = top.value
            value = file.namespace.get(top.id) if isinstance(top, ast.Name) else None
            if isinstance(value, PoolbisectStub) or is_placeholder_class(value):
                self._guesses.note(f"what the base class {ast.unparse(base)} does")

    def _importer(self, file: _File) -> Callable[[str, str | None, int, str], Any]:
        def take_import(module: str, attribute: str | None, level: int, name: str) -> Any:
            return self._imported(file, name, ImportSource(module, attribute, level), False)

        return take_import

    def _imported(self, file: _File, name: str, source: ImportSource, conditional: bool) -> Any:
        """What an import binds: a real package's object, a slice, or a stand-in."""
        if source.level == 0 and source.module.split(".")[0] in _REAL_PACKAGES:
            return self._real(name, source)
        if source.attribute is None:
            return placeholder(name, self._guesses)
        answer = prepared(source.attribute)
        if answer is not None:
            return answer
        found = self._locate(file.path, source)
        if found is not None and not conditional:
            home, original = found
            is_class = isinstance(home.names[original].node, ast.ClassDef)
            if (is_class and name in file.bindings.constructed) or (
                not is_class and self._is_self_contained(home, original, set())
            ):
                return self._take(home, original)
        return placeholder(source.attribute, self._guesses)

    def _real(self, name: str, source: ImportSource) -> Any:
        try:
            module = importlib.import_module(source.module)
            if source.attribute is not None:
                return getattr(module, source.attribute)
            top = source.module.split(".")[0]
            return sys.modules[top] if name == top else module
        except (ImportError, AttributeError):  # another version of the package than upstream's
            return placeholder(name, self._guesses)

    def _locate(self, path: str, source: ImportSource) -> tuple[_File, str] | None:
        """The file that really defines an imported name, through re-exports; None if outside."""
        seen: set[tuple[str, str]] = set()
        while source.attribute is not None:
            home = next(filter(None, map(self._file, _paths_of(path, source))), None)
            if home is None or source.attribute not in home.names:
                return None
            if (home.path, source.attribute) in seen:
                return None
            seen.add((home.path, source.attribute))
            further = home.names[source.attribute].source
            if further is None:
                return home, source.attribute
            path, source = home.path, further
        return None

    def _is_self_contained(self, file: _File, name: str, seen: set[str]) -> bool:
        """Whether a definition needs nothing but its own file, real packages and known answers."""
        binding = file.names[name]
        seen.add(name)
        if binding.source is not None:
            real = binding.source.module.split(".")[0] in _REAL_PACKAGES
            return real or prepared(name) is not None
        if binding.conditional:
            return False
        at_once, later = free_names(compiled(file.path, binding.node))
        return IMPORT not in later and all(
            self._is_self_contained(file, other, seen)
            for other in at_once | later
            if other in file.names and other not in seen
        )


def _paths_of(path: str, source: ImportSource) -> Iterator[str]:
    parts = source.module.split(".") if source.module else []
    if source.level:
        parts = path.split("/")[: -source.level] + parts
    stem = "/".join(parts)
    yield f"{stem}.py"
    yield f"{stem}/__init__.py"


@contextmanager
def _registered(module: types.ModuleType) -> Iterator[None]:
    """Dataclasses look their module up in `sys.modules` while the class is being made."""
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]
