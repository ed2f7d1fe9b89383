"""`poolbisect doctor`: what works here, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import click
from rich.console import Console
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `required` ones are needed for the main job, `poolbisect run`."""

    what: str
    works: bool
    detail: str
    required: bool = True
    remedy: str = ""


@click.command(name="doctor")
def command() -> int:
    """Say what works on this machine, what is missing and how to get it.

    Exit code 0 when `poolbisect run` works here, 3 when it does not.
    """
    console = Console()
    checks = [check() for check in CHECKS]
    for check in checks:
        mark, style = ("ok     ", "green") if check.works else ("missing", "red")
        if not check.works and not check.required:
            style = "yellow"
        console.print(Text.assemble((mark, style), f"  {check.what}: {check.detail}"))
        if not check.works and check.remedy:
            console.print(Text(f"         {check.remedy}", style="dim"))
    return 0 if all(check.works for check in checks if check.required) else 3


def _python() -> Check:
    return Check("Python", True, platform.python_version())


def _torch() -> Check:
    import torch

    detail = f"{torch.__version__}, {torch.get_num_threads()} threads"
    return Check("PyTorch", True, detail)


def _cuda() -> Check:
    import torch

    works = torch.cuda.is_available()
    detail = torch.cuda.get_device_name() if works else "no CUDA device; everything runs on the CPU"
    return Check(
        "CUDA", works, detail, False, "For --device cuda: an NVIDIA GPU and a CUDA build of torch."
    )


def _weights() -> Check:
    from poolbisect.errors import PoolbisectError
    from poolbisect.models.loading import MODELS, load_model

    try:
        found = [f"{name} {load_model(name).sha256[:12]}" for name in MODELS]
    except PoolbisectError as error:
        return Check("model weights", False, str(error), remedy="Reinstall poolbisect.")
    return Check("model weights", True, f"{', '.join(found)} (SHA-256)")


def _scenarios() -> Check:
    from poolbisect.errors import PoolbisectError
    from poolbisect.scenario import load_scenario, scenario_folder, scenario_names

    names = scenario_names()
    try:
        for name in names:
            load_scenario(name)
    except PoolbisectError as error:
        return Check("scenarios", False, str(error), remedy="Mend or remove that file.")
    detail = f"{len(names)} in {scenario_folder()}"
    return Check("scenarios", bool(names), detail, remedy="Reinstall poolbisect.")


def _pip() -> Check:
    works = importlib.util.find_spec("pip") is not None
    detail = importlib.metadata.version("pip") if works else "not in this environment"
    remedy = "For release:<version> subjects: python -m ensurepip"
    return Check("pip (release subjects)", works, detail, False, remedy)


def _git() -> Check:
    path = shutil.which("git")
    remedy = "For histories of an SGLang checkout: install git."
    return Check("git", path is not None, path or "not on PATH", False, remedy)


def _sglang() -> Check:
    try:
        version = importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        remedy = (
            "For the real server: pip install 'poolbisect[sglang]' (needs a GPU or a CPU build)."
        )
        return Check("SGLang", False, "not installed; the miniature needs none", False, remedy)
    return Check("SGLang", True, version, False)


CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _torch,
    _cuda,
    _weights,
    _scenarios,
    _pip,
    _git,
    _sglang,
)
