"""What would be imported and run: asked of the very interpreter, folder and environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poolbisect.errors import InfrastructureError

PACKAGES = (
    "sglang",
    "torch",
    "transformers",
    "triton",
    "flashinfer-python",
    "sglang-kernel",
    "sgl-kernel",
    "numpy",
)
_SECONDS = 120
_ASK = """
import importlib.metadata, importlib.util, json, platform, sys, sysconfig
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
module, *names = sys.argv[1:]
found = importlib.util.find_spec(module)
places = list(found.submodule_search_locations or ()) if found else []
print(json.dumps({
    "python": platform.python_version(),
    "executable": sys.executable,
    "origin": (found.origin or (places[0] if places else None)) if found else None,
    "versions": {name: version(name) for name in names},
    "standard_library": sysconfig.get_path("stdlib"),
    "packages": sorted({sysconfig.get_path(p) for p in ("purelib", "platlib")}),
}))
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """What an interpreter would run. `origin` is the file that the module is imported from;
    `standard_library` and `packages` are where its own modules lie."""

    python: str
    executable: str
    origin: str | None
    versions: Mapping[str, str | None]
    standard_library: Path
    packages: tuple[Path, ...]


def ask(python: Path, module: str, environment: Mapping[str, str], cwd: Path) -> Proof:
    """Where `module` comes from and which packages are there; nothing of it is imported.

    Raises:
        InfrastructureError: the interpreter does not start or does not answer.
    """
    try:
        done = subprocess.run(
            [str(python), "-c", _ASK, module, *PACKAGES],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environment),
            cwd=cwd,
            timeout=_SECONDS,
            check=True,
        )
        facts = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        stderr = (getattr(error, "stderr", None) or "").strip().splitlines()
        raise InfrastructureError(
            f"The interpreter {python} does not run ({stderr[-1] if stderr else error})."
        ) from error
    return Proof(
        python=facts["python"],
        executable=facts["executable"],
        origin=facts["origin"],
        versions=facts["versions"],
        standard_library=Path(facts["standard_library"]),
        packages=tuple(map(Path, facts["packages"])),
    )
