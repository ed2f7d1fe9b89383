"""From a commit, a release or what is installed to something that can be launched."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolbisect.errors import InfrastructureError
from poolbisect.history.repository import Commit, Repository
from poolbisect.probes.command.tree_folder import TreeFolder
from poolbisect.probes.command.worktrees import Worktrees
from poolbisect.probes.server.bytecode import bytecode_folder
from poolbisect.probes.server.dependencies import (
    PACKAGE_ROOT,
    Declared,
    UnreadableDependenciesError,
    agreement,
    declared_by,
    of_release,
)
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.environment import GIVEN, Environment, Environments, NotBuiltError
from poolbisect.probes.server.options import Isolation, ServerOptions, interpreter
from poolbisect.probes.server.proof import Proof, ask

PROJECT = "sglang"
# What would lead an interpreter away from its own packages and from the tree under test.
_LEADING_ASTRAY = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
)

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Installation:
    """Something that can be launched. `facts` are JSON-ready: what would run, and from where."""

    name: str
    python: Path
    tree: Path | None
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict)


class Installer:
    """Brings subjects onto this host, one at a time; the work tree moves from commit to commit.

    Work tree and bytecode lie in the cache, in a folder of their own for each `scratch`.
    """

    def __init__(self, options: ServerOptions, scratch: Path) -> None:
        self._options = options
        self._scratch = scratch
        self._folder: TreeFolder | None = None
        self._base = interpreter(options.python)
        self._environments = Environments(options.environments, self._base, options.build_timeout)
        self._worktrees: Worktrees | None = None

    def commit(self, repository: Repository, commit: Commit, watch: Watch) -> Installation:
        """A commit's sources, with what it declares to depend on (or the given packages).

        Raises:
            NotBuiltError: its dependencies cannot be had, or its code would not be what runs.
        """
        if self._worktrees is None:
            self._worktrees = Worktrees(repository, self._place() / "worktrees")
        watch("checking out")
        tree = self._worktrees.at(commit)
        try:
            declared = declared_by(tree, self._options.pyproject)
        except UnreadableDependenciesError as error:
            raise NotBuiltError(Finding(ServerEnd.DEPENDENCY, str(error))) from error
        sources = tree / PACKAGE_ROOT if (tree / PACKAGE_ROOT).is_dir() else tree
        found = self._install(f"commit {commit.short}", declared, watch, tree, sources, commit.sha)
        self._check_origin(found, sources)
        return found

    def release(self, version: str, watch: Watch) -> Installation:
        """A released version in an environment of its own. NotBuiltError as for a commit."""
        declared = of_release(PROJECT, version)
        return self._install(f"{PROJECT} {version}", declared, watch)

    def installed(self, watch: Watch) -> Installation:
        """What the given interpreter has."""
        environment = self._environments.as_it_is(self._base)
        return self._describe("installed", environment, Declared((), "what is installed"))

    def close(self) -> None:
        """Remove work tree and bytecode."""
        self._worktrees = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = TreeFolder(self._scratch, self._options.trees)
        return self._folder.path

    def _install(
        self,
        name: str,
        declared: Declared,
        watch: Watch,
        tree: Path | None = None,
        sources: Path | None = None,
        revision: str | None = None,
    ) -> Installation:
        given = tree is not None and self._options.isolation is Isolation.GIVEN
        if given:
            environment = self._environments.as_it_is(self._base)
        else:
            environment = self._environments.with_dependencies(declared, watch)
        return self._describe(name, environment, declared, tree, sources, revision)

    def _describe(
        self,
        name: str,
        environment: Environment,
        declared: Declared,
        tree: Path | None = None,
        sources: Path | None = None,
        revision: str | None = None,
    ) -> Installation:
        process = _environment_of(environment, sources)
        cwd = self._place() / "empty"  # nothing there can be imported by accident
        cwd.mkdir(parents=True, exist_ok=True)
        proof = self._ask(environment, process, cwd)
        if sources is not None:
            own = environment.folder / "bytecode"
            shared = {package: own / str(at) for at, package in enumerate(proof.packages)}
            shared[proof.standard_library] = self._options.environments / "bytecode" / proof.python
            folder = self._place() / "bytecode" / (revision or environment.key)
            process["PYTHONPYCACHEPREFIX"] = str(bytecode_folder(folder, shared))
            process.pop("PYTHONDONTWRITEBYTECODE", None)  # the folder is ours to write
        return Installation(
            name=name,
            python=environment.python,
            tree=tree,
            cwd=cwd,
            environment=process,
            facts={
                "serves": name,
                "revision": revision,
                "imported_from": proof.origin,
                "executable": proof.executable,
                "python": proof.python,
                "versions": {k: v for k, v in proof.versions.items() if v is not None},
                "environment": environment.key,
                "environment_reused": environment.reused,
                "declared_by": declared.source,
                "declared": list(declared.requirements),
                "kernel": agreement(declared.kernel, proof.versions),
            },
        )

    def _ask(self, environment: Environment, process: Mapping[str, str], cwd: Path) -> Proof:
        try:
            return ask(environment.python, self._options.module, process, cwd)
        except InfrastructureError as error:
            raise NotBuiltError(Finding(ServerEnd.HOST, str(error).rstrip("."))) from error

    def _check_origin(self, found: Installation, sources: Path) -> None:
        """That the package which proves the origin comes from the tree, if the tree has it."""
        module = self._options.module
        has_it = (sources / module).is_dir() or (sources / f"{module}.py").is_file()
        origin = found.facts["imported_from"]
        inside = origin is not None and Path(origin).is_relative_to(sources)
        if has_it and not inside:
            raise NotBuiltError(
                Finding(
                    ServerEnd.WRONG_CODE,
                    f"{module} would be imported from {origin or 'nowhere'}, not from the commit",
                )
            )


def _environment_of(environment: Environment, sources: Path | None) -> dict[str, str]:
    """The process environment: the host's, without what leads Python astray."""
    process = {k: v for k, v in os.environ.items() if k not in _LEADING_ASTRAY}
    if environment.key != GIVEN:
        process["PYTHONNOUSERSITE"] = "1"
    process["PYTHONUNBUFFERED"] = "1"
    process["PATH"] = os.pathsep.join(
        (str(environment.python.parent), process.get("PATH", os.defpath))
    )
    if sources is not None:
        process["PYTHONPATH"] = str(sources)
    return process
