"""What a night ran with: versions, the machine, and the runner that a score may follow."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from poolbisect.own_environment import own_version

_CAN_MOVE_A_SCORE = ("torch", "numpy", "safetensors")


def environment() -> dict[str, Any]:
    """For the document: `dependencies` are what a score may change with, by name and version."""
    import torch

    versions = {"poolbisect": own_version(), "python": platform.python_version()}
    for name in _CAN_MOVE_A_SCORE:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "poolbisect": versions["poolbisect"],
        "python": versions["python"],
        "torch": str(torch.__version__),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "runner": runner(),
        "dependencies": versions,
    }


def runner() -> str:
    """What tells two machines apart: in GitHub's CI the runner's name, else a digest of the
    machine's, which a report that is handed on does not give away."""
    if named := os.environ.get("RUNNER_NAME"):
        return named
    return f"host-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}"
