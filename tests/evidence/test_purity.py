from __future__ import annotations

import pkgutil
import subprocess
import sys

import poolbisect.evidence


def test_the_evidence_package_loads_neither_git_nor_torch_nor_the_engine():
    modules = [m.name for m in pkgutil.iter_modules(poolbisect.evidence.__path__)]
    assert "series" in modules
    imports = "; ".join(f"import poolbisect.evidence.{name}" for name in modules)
    listing = "import sys; print(*sorted(sys.modules), sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", f"{imports}; {listing}"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"git", "torch", "sglang", "pandas"} & set(loaded)
    own = {name for name in loaded if name.startswith("poolbisect.")}
    assert {name.split(".")[1] for name in own} == {"evidence"}
