"""What a tree of sources says it depends on."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

PACKAGE_ROOT = "python"
"""The folder of SGLang's repository that holds the package and its pyproject.toml."""
KERNELS = ("sglang-kernel", "sgl-kernel")
"""Names of the wheel with SGLang's compiled kernels, the newer one first."""
_EXTRAS_OF_OLD_RELEASES = ("srt",)  # until 0.5 the server's own dependencies were an extra

_WITHOUT_EXTRA = Version("0.5")


class UnreadableDependenciesError(Exception):
    """A tree's declaration cannot be read; the message says which file and why."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Requirements in a canonical form and order, as pip takes them."""

    requirements: tuple[str, ...]
    source: str

    @property
    def kernel(self) -> str | None:
        """The kernel wheel's requirement, as declared; None without one."""
        for text in self.requirements:
            if canonicalize_name(Requirement(text).name) in KERNELS:
                return text
        return None

    def key(self, *more: str) -> str:
        """A name for an environment that has just these and was made with `more`."""
        facts = json.dumps([*self.requirements, "", *more]).encode()
        return hashlib.sha256(facts).hexdigest()[:20]


def declared_by(tree: Path, file: str = "pyproject.toml") -> Declared:
    """The dependencies that the sources in `tree` declare; none where there is no such file.

    Raises:
        UnreadableDependenciesError: the file is no TOML, or a requirement in it is none.
    """
    for path in (tree / PACKAGE_ROOT / file, tree / file):
        if path.is_file():
            return _read(path, str(path.relative_to(tree)))
    return Declared((), "nothing declared")


def of_release(project: str, version: str) -> Declared:
    """A released version, whose own metadata says the rest."""
    extra = "[srt]" if Version(version) < _WITHOUT_EXTRA else ""
    return Declared((f"{project}{extra}=={version}",), f"{project} {version}")


def agreement(requirement: str | None, versions: Mapping[str, str | None]) -> dict[str, Any] | None:
    """The kernel wheel declared against the one installed; None where none is declared."""
    if requirement is None:
        return None
    wanted = Requirement(requirement)
    installed = versions.get(canonicalize_name(wanted.name))
    fits = installed is not None and fits_version(wanted.specifier, installed)
    return {"declared": requirement, "installed": installed, "agrees": fits}


def fits_version(specifier: SpecifierSet, version: str) -> bool:
    """Whether a version is allowed; one with a build tag such as `+cu130` is taken without it."""
    return specifier.contains(version.partition("+")[0], prereleases=True)


def _read(path: Path, name: str) -> Declared:
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    except (OSError, ValueError) as error:
        raise UnreadableDependenciesError(f"{name} cannot be read ({error})") from error
    try:
        listed = list(project.get("dependencies", ()))
        extras: Mapping[str, Sequence[str]] = project.get("optional-dependencies", {})
        for extra in _EXTRAS_OF_OLD_RELEASES:
            listed += extras.get(extra, ())
        own = canonicalize_name(str(project.get("name", "")))
        found = {_canonical(one) for one in _expanded(map(Requirement, listed), own, extras)}
    except (InvalidRequirement, TypeError, AttributeError) as error:
        raise UnreadableDependenciesError(f"{name} declares no requirement ({error})") from error
    return Declared(tuple(sorted(found)), name)


def _expanded(
    requirements: Iterable[Requirement], own: str, extras: Mapping[str, Sequence[str]]
) -> list[Requirement]:
    """Requirements with the project's own extras, such as `sglang[common]`, put in their place."""
    found: list[Requirement] = []
    waiting, seen = list(requirements), set[str]()
    while waiting:
        one = waiting.pop()
        if canonicalize_name(one.name) != own:
            found.append(one)
            continue
        for extra in one.extras - seen:
            seen.add(extra)
            waiting += map(Requirement, extras.get(extra, ()))
    return found


def _canonical(requirement: Requirement) -> str:
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)
