"""`poolbisect doctor`: what works here, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
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
    from poolbisect.scenario import (
        load_scenario,
        scenario_folder,
        scenario_names,
        server_scenario_names,
    )

    names = [*scenario_names(), *server_scenario_names()]
    try:
        for name in names:
            load_scenario(name)
    except PoolbisectError as error:
        return Check("scenarios", False, str(error), remedy="Mend or remove that file.")
    servers = len(server_scenario_names())
    detail = f"{len(names)} in {scenario_folder()}, {servers} of them for the server probe only"
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
    what = "SGLang (server probe)"
    try:
        found = importlib.util.find_spec("sglang") is not None
        version = importlib.metadata.version("sglang") if found else ""
    except (importlib.metadata.PackageNotFoundError, ValueError):
        version = "a checkout without metadata"
    if not found:
        remedy = (
            "For subject `installed`: pip install 'poolbisect[sglang]' on a host with a GPU, or a "
            "CPU build. Commits and releases get an environment of their own and need none here; "
            "any other server: --server-command."
        )
        return Check(what, False, "not installed; the miniature needs none", False, remedy)
    return Check(what, True, version, False)


def _gpus() -> Check:
    from poolbisect.probes.server.devices import list_devices

    what = "GPUs (server probe)"
    devices = list_devices()
    if not devices:
        remedy = "For SGLang's GPU builds: an NVIDIA driver with nvidia-smi on PATH."
        return Check(what, False, "nvidia-smi lists none; servers get the CPU", False, remedy)
    busy = sum(device.busy for device in devices)
    detail = f"{len(devices)} x {devices[0].name}, {busy} in use"
    remedy = "Wait until one is free, or see with nvidia-smi who uses it."
    return Check(what, busy < len(devices), detail, False, remedy)


def _environments() -> Check:
    what = "environments of commits (server probe)"
    missing = [name for name in ("venv", "pip") if importlib.util.find_spec(name) is None]
    if missing:
        remedy = "Install python3-venv, and pip with python -m ensurepip; or use --isolation given."
        return Check(what, False, f"{' and '.join(missing)} missing", False, remedy)
    from poolbisect.probes.server.options import ServerOptions

    folder = ServerOptions().environments
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(place).free >> 30
    if not os.access(place, os.W_OK):
        remedy = "Set POOLBISECT_CACHE to a folder you can write."
        return Check(what, False, f"{folder} cannot be written", False, remedy)
    return Check(what, True, f"made in {folder}, {free} GiB free", False)


def _ports() -> Check:
    from poolbisect.probes.server.ports import free_port

    what = "ports (server probe)"
    try:
        port = free_port("127.0.0.1")
    except OSError as error:
        remedy = "Servers listen on 127.0.0.1: allow that in the sandbox or container."
        return Check(what, False, f"none can be bound ({error.strerror})", False, remedy)
    return Check(what, True, f"127.0.0.1 can be listened on (tried {port})", False)


def _leases() -> Check:
    from poolbisect.probes.server.leases import default_lease_folder

    what = "leases of devices (server probe)"
    folder = default_lease_folder()
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(place, os.W_OK):
        remedy = "Set POOLBISECT_LEASES to a folder you can write, local to this host."
        return Check(what, False, f"{folder} cannot be written", False, remedy)
    return Check(what, True, str(folder), False)


CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _torch,
    _cuda,
    _weights,
    _scenarios,
    _pip,
    _git,
    _sglang,
    _gpus,
    _environments,
    _ports,
    _leases,
)
