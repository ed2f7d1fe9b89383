"""Virtual environments, one for each set of declared dependencies, reused when the set is equal."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from poolbisect.errors import InfrastructureError
from poolbisect.probes.command.process import run_process
from poolbisect.probes.command.removal import remove_tree
from poolbisect.probes.server.dependencies import Declared
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.log_signs import last_words

GIVEN = "given"
"""Key of an environment that is taken as it is."""
_COMPLETE = "complete.json"
_LOG = "pip.log"
# pip's words when the index did not answer, as opposed to having no such version.
_UNREACHABLE = re.compile(
    r"retrying|connection|proxyerror|timed? ?out|name resolution|getaddrinfo|ssl ?error"
    r"|no space left",
    re.I,
)

Watch = Callable[[str], None]


class NotBuiltError(Exception):
    """An environment could not be made; `finding` says whose fault it is, `log` has the rest."""

    def __init__(self, finding: Finding, log: Path | None = None) -> None:
        super().__init__(finding.detail)
        self.finding = finding
        self.log = log


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter with its packages. `folder` is ours, for caches that belong to it."""

    python: Path
    folder: Path
    key: str
    reused: bool


class Environments:
    """Environments below `folder`, shared by all bisects of the host that use it.

    An environment is never changed once it is complete: one whose packages are no longer those it
    was completed with is made anew. Two processes that want the same one wait for each other.
    """

    def __init__(self, folder: Path, base_python: Path, build_timeout: float) -> None:
        self.folder = folder
        self._base_python = base_python
        self._timeout = build_timeout
        self._failed: dict[str, Finding] = {}

    def with_dependencies(self, declared: Declared, watch: Watch) -> Environment:
        """The environment with exactly what is declared, made if need be.

        Raises:
            NotBuiltError: a dependency does not install, or the host is at fault.
        """
        tag = f"{platform.python_implementation()}-{sysconfig.get_platform()}"
        key = declared.key(str(self._base_python), tag)
        if key in self._failed:
            raise NotBuiltError(self._failed[key], self.folder / key / _LOG)
        folder = self.folder / key
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f"{key}.lock"):
                if self._is_complete(folder, declared):
                    return Environment(_python_of(folder), folder, key, reused=True)
                watch(f"installing {len(declared.requirements)} dependencies")
                self._make(folder, declared)
        except OSError as error:
            reason = error.strerror or str(error)
            raise NotBuiltError(
                Finding(ServerEnd.HOST, f"the environment {folder} cannot be made ({reason})")
            ) from error
        except NotBuiltError as error:
            if error.finding.end is ServerEnd.DEPENDENCY:
                self._failed[key] = error.finding
            raise
        return Environment(_python_of(folder), folder, key, reused=False)

    def as_it_is(self, python: Path) -> Environment:
        """An interpreter of the user's, whose packages are taken as they are."""
        key = Declared((), "").key(GIVEN, str(python))
        folder = self.folder / f"{GIVEN}-{key}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"{folder} cannot be made ({error.strerror or error}); "
                "give another folder with --environments."
            ) from error
        return Environment(python, folder, GIVEN, reused=True)

    def _is_complete(self, folder: Path, declared: Declared) -> bool:
        try:
            known = json.loads((folder / _COMPLETE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        wanted = {"requirements": list(declared.requirements), "installed": _installed(folder)}
        return bool(known == wanted and _python_of(folder).exists())

    def _make(self, folder: Path, declared: Declared) -> None:
        remove_tree(folder)
        folder.mkdir()
        listing = folder / "requirements.txt"
        listing.write_text("\n".join(declared.requirements) + "\n", encoding="utf-8")
        made = [str(self._base_python), "-m", "venv", "--without-pip", str(folder / "venv")]
        self._run(made, folder, ServerEnd.HOST, "the virtual environment cannot be made")
        if declared.requirements:
            # pip of this interpreter installs into the other one, which needs none of its own.
            self._run(
                [
                    *(sys.executable, "-m", "pip", f"--python={_python_of(folder)}"),
                    *("--no-input", "--disable-pip-version-check", "install"),
                    *("--progress-bar=off", "--no-compile", f"--requirement={listing}"),
                ],
                folder,
                ServerEnd.DEPENDENCY,
                f"the dependencies of {declared.source} do not install",
            )
        facts = {"requirements": list(declared.requirements), "installed": _installed(folder)}
        (folder / _COMPLETE).write_text(json.dumps(facts, indent=1), encoding="utf-8")

    def _run(self, argv: list[str], folder: Path, blame: ServerEnd, sentence: str) -> None:
        finished = run_process(
            argv,
            cwd=folder,
            env=dict(os.environ),
            timeout=self._timeout,
            log=folder / _LOG,
            stdout=Path(os.devnull),
        )
        if finished.status == 0:
            return
        text = (folder / _LOG).read_text(encoding="utf-8", errors="replace")
        if finished.timed_out:
            finding = Finding(ServerEnd.HOST, f"{sentence} within {self._timeout:g} seconds")
            raise NotBuiltError(finding, folder / _LOG)
        if _UNREACHABLE.search(text):
            blame, sentence = ServerEnd.HOST, f"{sentence}: no package index answers"
        errors = [line.strip() for line in text.splitlines() if line.startswith("ERROR:")]
        # pip sums up at the end; its first error names the requirement.
        finding = Finding(blame, sentence, errors[0] if errors else last_words(text))
        raise NotBuiltError(finding, folder / _LOG)


def _python_of(folder: Path) -> Path:
    return folder / "venv" / "bin" / "python"


def _installed(folder: Path) -> list[str]:
    """Names and versions of what is installed, as the metadata folders are called."""
    found = (folder / "venv").glob("lib/python*/site-packages/*.dist-info")
    return sorted(path.name.removesuffix(".dist-info") for path in found)
