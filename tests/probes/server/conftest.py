"""What the tests of the server probe share: the stand-in, quick options, looks for leftovers."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from poolbisect.measurement import Measurement
from poolbisect.probes.server.ledger import end_orphans
from poolbisect.probes.server.measure import measure_server
from poolbisect.probes.server.options import ServerOptions
from poolbisect.scenario import load_scenario

STAND_IN = Path(__file__).parent / "stand_in" / "server.py"


@pytest.fixture
def stand_in_command() -> tuple[str, ...]:
    """Launches the stand-in; its own flags are among the server's."""
    return ("{python}", str(STAND_IN), "--host", "{host}", "--port", "{port}", "{flags}")


@pytest.fixture(scope="session")
def shared_environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Environments that all tests may share: those without dependencies."""
    return tmp_path_factory.mktemp("environments")


@pytest.fixture
def options(
    tmp_path: Path, stand_in_command: tuple[str, ...], shared_environments: Path
) -> Callable[..., ServerOptions]:
    """Options with short times; leases are the test's own."""

    def make(*flags: str, **more: Any) -> ServerOptions:
        quick: dict[str, Any] = {
            "model": "stand-in",
            "command": stand_in_command,
            "flags": flags,
            "leases": tmp_path / "leases",
            "trees": tmp_path / "trees",
            "environments": shared_environments,
            "health_timeout": 60.0,
            "stall_timeout": 30.0,
            "question_timeout": 30.0,
            "lease_timeout": 30.0,
            "grace": 3.0,
            "concurrency": 16,
        }
        return ServerOptions(**(quick | more))

    return make


@pytest.fixture
def serve(tmp_path: Path, options: Callable[..., ServerOptions]) -> Callable[..., Measurement]:
    """Measure the stand-in with a fault; afterwards nothing of it may be left."""

    def measure(
        fault: str = "", *flags: str, questions: int = 30, folder: str = "run", **more: Any
    ) -> Measurement:
        return measure_server(
            load_scenario("mimo-canary"),
            "installed",
            options("--fault", fault, *flags, **more),
            folder=tmp_path / folder,
            questions=questions,
        )

    return measure


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """No process of a test survives it, and no record of a server."""
    yield
    left = [p for p in psutil.process_iter(["cmdline"]) if _is_of(p, str(tmp_path))]
    _, alive = psutil.wait_procs(left, timeout=20)  # a keeper whose tool was killed takes a moment
    for process in alive:
        process.kill()
    assert not alive, [process.info["cmdline"] for process in alive]
    end_orphans(tmp_path / "leases")  # forgets records of killed tools
    assert not list(tmp_path.glob("leases/server-*.json"))


def _is_of(process: psutil.Process, folder: str) -> bool:
    if process.status() == psutil.STATUS_ZOMBIE:
        return False
    try:
        return process.environ().get("PYTEST_OF") == folder or process.cwd().startswith(folder)
    except (psutil.Error, OSError):
        return False


@pytest.fixture(autouse=True)
def marked_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTEST_OF", str(tmp_path))


@pytest.fixture
def detached_processes() -> Callable[[Path], dict[int, bool]]:
    """Ids of processes that the stand-in says in its log to have detached: do they still live?"""

    def read(log: Path) -> dict[int, bool]:
        found = re.findall(r"^detached (\d+)$", log.read_text(), re.M)
        return {int(pid): lives(int(pid)) for pid in found}

    return read


def lives(pid: int) -> bool:
    """Whether a process runs; one that is only waiting to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[[str, str, Mapping[str, str]], Path]:
    """Write a pure-Python wheel by hand into one folder of wheels; the folder."""
    folder = tmp_path / "wheels"
    folder.mkdir()

    def make(name: str, version: str, files: Mapping[str, str]) -> Path:
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        contents = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, content in (contents | {f"{info}/RECORD": record}).items():
                archive.writestr(path, content)
        return folder

    return make


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip finds what lies in the folder of wheels, and asks no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    assert shutil.which(sys.executable)
