"""The GPUs of this host, as far as nvidia-smi tells of them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

_QUERY = "--query-gpu=index,uuid,name,memory.used,memory.total"
_BUSY_MIB = 2048
"""More memory than this in use means that somebody works on a device."""
_FREED_MIB = 1024
_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU; memory in MiB."""

    index: int
    uuid: str
    name: str
    used: int
    total: int

    @property
    def busy(self) -> bool:
        return self.used > _BUSY_MIB


def list_devices() -> list[Device]:
    """The GPUs this process may use; none where there is no NVIDIA driver."""
    try:
        shown = subprocess.run(
            ["nvidia-smi", _QUERY, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return visible(parse_devices(shown), os.environ.get("CUDA_VISIBLE_DEVICES"))


def parse_devices(shown: str) -> list[Device]:
    """The lines of nvidia-smi's answer; lines that are none are left out."""
    devices = []
    for line in shown.splitlines():
        fields = [field.strip() for field in line.split(",")]
        try:
            index, uuid, name, used, total = fields
            devices.append(Device(int(index), uuid, name, int(used), int(total)))
        except ValueError:
            continue
    return devices


def visible(devices: Sequence[Device], setting: str | None) -> list[Device]:
    """Those that CUDA_VISIBLE_DEVICES leaves visible, in its order: indices or (parts of) UUIDs.

    As CUDA does, the list ends at the first entry that names no device.
    """
    if setting is None:
        return list(devices)
    chosen: list[Device] = []
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        found = [d for d in devices if entry == str(d.index) or d.uuid.startswith(entry)]
        if not found:
            break
        chosen.append(found[0])
    return chosen


def wait_until_freed(before: Sequence[Device], seconds: float) -> str | None:
    """Wait for devices to hold no more memory than `before`; what one still holds, if it does."""
    until = time.monotonic() + seconds
    while before:
        now = {device.uuid: device for device in list_devices()}
        held = [
            (device, now[device.uuid].used)
            for device in before
            if device.uuid in now and now[device.uuid].used > device.used + _FREED_MIB
        ]
        if not held:
            return None
        if time.monotonic() > until:
            device, used = held[0]
            return f"GPU {device.index} still holds {used} MiB, {device.used} before the server"
        time.sleep(_LOOK)
    return None
