"""Leases of a host's GPUs by file locks, so that two probes never share one.

A lock is the operating system's: it is free again as soon as its holder is gone, however it went.
On a host without GPUs the slots of the CPU are leased in the same way.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from poolbisect.errors import InfrastructureError
from poolbisect.probes.server.devices import Device, list_devices

_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Lease:
    """What a server may use: GPUs, or the named slots of the CPU."""

    devices: tuple[Device, ...]
    names: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        """What makes a server see just these; nothing for the CPU."""
        if not self.devices:
            return {}
        indices = ",".join(str(device.index) for device in self.devices)
        # nvidia-smi numbers devices by their place on the bus, CUDA by speed unless told.
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": indices}


class NoLeaseError(InfrastructureError):
    """Not enough devices came free in time, or the host has too few."""


def default_lease_folder() -> Path:
    """`$POOLBISECT_LEASES`, else a folder of this user in the host's temporary folder.

    It must be local to the host; users who share one set the variable to one folder for all.
    """
    if chosen := os.environ.get("POOLBISECT_LEASES"):
        return Path(chosen).expanduser()
    return Path(tempfile.gettempdir()) / f"poolbisect-leases-{os.getuid()}"


@contextmanager
def lease(
    folder: Path,
    count: int,
    seconds: float,
    watch: Callable[[str], None],
    *,
    slots: int = 1,
    find: Callable[[], Sequence[Device]] = list_devices,
) -> Iterator[Lease]:
    """Hold `count` GPUs that nobody uses, or one of `slots` CPU slots where there is no GPU.

    All or none are taken, so that two who wait cannot block each other.

    Raises:
        NoLeaseError: the host has fewer, or they do not come free within `seconds`.
    """
    _make(folder)
    until = time.monotonic() + seconds
    told = False
    while True:
        with ExitStack() as held:
            devices = list(find())
            if devices and len(devices) < count:
                raise NoLeaseError(
                    f"The server needs {count} GPUs and {len(devices)} can be used here; change "
                    "its parallelism, or CUDA_VISIBLE_DEVICES."
                )
            taken, wanted = _try_all(folder, devices, count, slots, held)
            if taken is not None:
                yield taken
                return
        if time.monotonic() > until:
            raise NoLeaseError(
                f"{wanted} did not come free within {seconds:g} seconds; "
                "wait for it, or see who holds it."
            )
        if not told:
            watch(f"waiting for {wanted}")
            told = True
        time.sleep(_LOOK)


def _try_all(
    folder: Path, devices: Sequence[Device], count: int, slots: int, held: ExitStack
) -> tuple[Lease | None, str]:
    """The lease, or None and what stands in its way."""
    if not devices:
        for slot in range(slots):
            name = f"cpu-{slot}"
            if _try(folder, name, held):
                return Lease((), (name,)), ""
        return None, f"a CPU slot ({_holder(folder, 'cpu-0')})"
    chosen: list[Device] = []
    why = ""
    for device in devices:
        name = f"gpu-{device.uuid}"
        if device.busy:
            why = (
                why or f"GPU {device.index} (in use: {device.used} MiB that no lease accounts for)"
            )
        elif _try(folder, name, held):
            chosen.append(device)
        else:
            why = f"GPU {device.index} ({_holder(folder, name)})"
        if len(chosen) == count:
            return Lease(tuple(chosen), tuple(f"gpu-{d.index}" for d in chosen)), ""
    return None, why


def _try(folder: Path, name: str, held: ExitStack) -> bool:
    try:
        held.enter_context(
            FileLock(folder / f"{name}.lock", timeout=0, mode=0o666, thread_local=False)
        )
    except Timeout:
        return False
    note = {"pid": os.getpid(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
    with contextlib.suppress(OSError):
        (folder / f"{name}.json").write_text(json.dumps(note), encoding="utf-8")
    return True


def _holder(folder: Path, name: str) -> str:
    try:
        note = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        return f"leased by process {note['pid']} since {note['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "leased by another process"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"The folder for leases {folder} cannot be made ({error.strerror or error}); "
            "set POOLBISECT_LEASES to one that can."
        ) from error
