"""What the user's package index offers, asked through pip so that its configuration is honoured."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from poolbisect.errors import InfrastructureError, UsageError

_PIP_SECONDS = 900
_QUIET = ("--no-input", "--disable-pip-version-check")
_NEWEST_FIRST = ("3.13", "3.12", "3.11", "3.10", "3.14")
# A wheel's tag names the oldest C library it runs on; no single flag of pip covers them all.
_GLIBC_MINORS = range(17, 43)
_CPUS = ("x86_64", "aarch64")
# Only a shortcut past slower checks: an unknown wording costs time, not the right answer.
_CONNECTION_TROUBLE = re.compile(
    r"retrying|connection|proxy ?error|timed? ?out|name resolution|getaddrinfo|ssl ?error", re.I
)
_CANDIDATES = re.compile(r"from versions:\s*([^)]*)\)")


def download_wheel(project: str, version: str, folder: Path) -> Path:
    """Download the wheel of exactly `version` into `folder`, which should be empty.

    Wheels of other interpreters and platforms are accepted: their sources are the same.

    Raises:
        UsageError: the index answered and has no such version.
        InfrastructureError: pip is missing or the index cannot be reached.
    """
    missing_everywhere = True
    for target in ((), *_other_targets()):
        attempt = _pip(
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--progress-bar=off",
            f"--dest={folder}",
            *target,
            f"{project}=={version}",
        )
        wheels = sorted(folder.glob("*.whl"))
        if attempt.returncode == 0 and wheels:
            return wheels[0]
        if _CONNECTION_TROUBLE.search(attempt.stderr):
            raise _unreachable(project)
        missing_everywhere &= bool(_candidates(attempt.stderr))
    # When pip did not say what it chose from, or found nothing to choose from, ask for the list.
    if not missing_everywhere and Version(version) in map(Version, offered_versions(project)):
        reason = (attempt.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InfrastructureError(
            f"pip could not download {project} {version} although the index has it ({reason}); "
            "try again."
        )
    raise UsageError(
        f"There is no {project} {version} wheel on your package index; "
        f"`pip index versions {project}` lists what there is."
    )


def offered_versions(project: str) -> list[str]:
    """All versions the index offers, oldest first, pre-releases included.

    Raises:
        InfrastructureError: pip is missing or the index cannot be reached.
    """
    offered: set[Version] = set()
    # pip lists what fits a target, and demands `only-binary` once the target is not its own.
    for target in ((), *_other_targets()):
        listing = _pip("index", "versions", "--pre", "--only-binary=:all:", *target, project)
        if listing.returncode == 0:
            offered.update(_versions(listing.stdout))
        elif _CONNECTION_TROUBLE.search(listing.stderr):
            raise _unreachable(project)
    if not offered:
        raise _unreachable(project)
    return [str(version) for version in sorted(offered)]


def _unreachable(project: str) -> InfrastructureError:
    return InfrastructureError(
        f"No package index with {project} could be reached through pip; "
        "check the network and pip's index configuration."
    )


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("pip") is None:
        raise InfrastructureError(
            f"The Python at {sys.executable} has no pip, which fetches releases; "
            "install it with `python -m ensurepip`."
        )
    command, *rest = arguments
    try:
        return subprocess.run(
            [sys.executable, "-m", "pip", command, *_QUIET, *rest],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_PIP_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(
            f"pip did not finish within {_PIP_SECONDS} seconds; check the network and try again."
        ) from error
    except OSError as error:
        raise InfrastructureError(f"pip could not be started: {error.strerror}.") from error


def _other_targets() -> Iterator[Sequence[str]]:
    platforms = [
        f"--platform=manylinux_2_{minor}_{cpu}" for cpu in _CPUS for minor in _GLIBC_MINORS
    ]
    platforms += [f"--platform=manylinux2014_{cpu}" for cpu in _CPUS]
    for python in _NEWEST_FIRST:
        abi = "cp" + python.replace(".", "")
        yield (
            *platforms,
            f"--python-version={python}",
            "--implementation=cp",
            f"--abi={abi}",
            "--abi=abi3",
            "--abi=none",
        )


def _candidates(stderr: str) -> set[Version]:
    """The versions that pip says it chose from, wherever it says so."""
    return {version for text in _CANDIDATES.findall(stderr) for version in _versions(text)}


def _versions(text: str) -> Iterator[Version]:
    for word in re.split(r"[\s,;:()]+", text):
        try:
            yield Version(word)
        except InvalidVersion:
            continue
