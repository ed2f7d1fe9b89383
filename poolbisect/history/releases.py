"""Released SGLang wheels as trees of sources: fetched once, cached by hash, never installed."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.package_index import download_wheel, offered_versions
from poolbisect.history.source_tree import SourceTree

PROJECT = "sglang"
_INDEX = "releases.json"


class WheelTree(SourceTree):
    """The sources inside one wheel; only the members asked for are read."""

    def __init__(self, wheel: Path) -> None:
        try:
            _, version, _, _ = parse_wheel_filename(wheel.name)
            with zipfile.ZipFile(wheel) as archive:
                self._members = frozenset(archive.namelist())
        except (InvalidWheelFilename, zipfile.BadZipFile, OSError) as error:
            raise InfrastructureError(
                f"{wheel} cannot be read as a wheel ({error}); delete it and try again."
            ) from error
        self.wheel = wheel
        self.version = str(version)

    @property
    def name(self) -> str:
        return f"{PROJECT} {self.version}"

    def read(self, path: str) -> str | None:
        if path not in self._members:
            return None
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.read(path).decode("utf-8", errors="replace")

    def find(self, text: str, under: str = "sglang/srt") -> Iterable[str]:
        sought = text.encode()
        folder = under.rstrip("/") + "/"
        with zipfile.ZipFile(self.wheel) as archive:
            return sorted(
                member
                for member in self._members
                if member.startswith(folder)
                and member.endswith(".py")
                and sought in archive.read(member)
            )


def default_cache_dir() -> Path:
    """`$POOLBISECT_CACHE`, else `$XDG_CACHE_HOME/poolbisect`, else `~/.cache/poolbisect`."""
    if chosen := os.environ.get("POOLBISECT_CACHE"):
        return Path(chosen).expanduser()
    # The XDG base directory specification: a relative path there is to be ignored.
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (home if home.is_absolute() else Path.home() / ".cache") / "poolbisect"


def list_releases() -> list[str]:
    """All SGLang versions on the user's package index, oldest first, pre-releases included.

    Raises:
        InfrastructureError: pip is missing or the index cannot be reached.
    """
    return offered_versions(PROJECT)


def fetch_release(version: str, cache_dir: Path | None = None) -> WheelTree:
    """The sources of a released version, from the cache when its recorded SHA-256 still holds.

    Raises:
        UsageError: `version` is not a version, or no such release exists.
        InfrastructureError: pip is missing, the index cannot be reached, or the cache folder
            cannot be written.
    """
    try:
        wanted = str(Version(version))
    except InvalidVersion as error:
        raise UsageError(
            f"{version!r} is not a release version; write it as in release:0.5.12."
        ) from error
    folder = cache_dir if cache_dir is not None else default_cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "releases.lock"):
            return _cached(wanted, folder) or _download(wanted, folder)
    except OSError as error:
        raise InfrastructureError(
            f"The cache folder {folder} cannot be used ({error.strerror or error}); "
            "set POOLBISECT_CACHE to a folder you can write."
        ) from error


def _cached(version: str, folder: Path) -> WheelTree | None:
    entry = _read_index(folder).get(version)
    if entry is None:
        return None
    wheel = folder / entry["file"]
    if not wheel.is_file() or _sha256(wheel) != entry["sha256"]:
        return None
    return WheelTree(wheel)


def _download(version: str, folder: Path) -> WheelTree:
    with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as scratch:
        arrived = download_wheel(PROJECT, version, Path(scratch))
        WheelTree(arrived)  # an archive that cannot be read never enters the cache
        digest = _sha256(arrived)
        wheel = folder / arrived.name
        os.replace(arrived, wheel)
    index = _read_index(folder)
    index[version] = {"file": wheel.name, "sha256": digest}
    _write_index(folder, index)
    return WheelTree(wheel)


def _read_index(folder: Path) -> dict[str, dict[str, str]]:
    """What the cache holds; an index that is missing or damaged counts as an empty cache."""
    try:
        content = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        version: entry
        for version, entry in content.items()
        if isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        and isinstance(entry.get("file"), str)
        and Path(entry["file"]).name == entry["file"]
    }


def _write_index(folder: Path, index: dict[str, dict[str, str]]) -> None:
    handle, scratch = tempfile.mkstemp(prefix="index-", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(index, file, indent=2, sort_keys=True)
    os.replace(scratch, folder / _INDEX)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
