"""What a bisect ran with, for its report."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("poolbisect", "torch", "numpy", "sglang")


def environment() -> dict[str, Any]:
    """Versions and the machine; a package that is not installed is left out."""
    found: dict[str, Any] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
    }
