"""What runs here: versions and machine, for the environment part of every report."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("torch", "numpy", "scipy")


def own_version() -> str:
    """poolbisect's version, also of a checkout that is not installed."""
    return _version("poolbisect") or "from a checkout"


def own_environment() -> dict[str, str]:
    """Names to versions; nothing of the user or of the machine's name is in it."""
    packages = {name: _version(name) for name in _PACKAGES}
    return {
        "poolbisect": own_version(),
        "python": platform.python_version(),
        **{name: found for name, found in packages.items() if found},
        "machine": platform.machine(),
        "system": platform.system(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
