"""The host's heap: keep what is freed, for large temporaries come back at every step."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_THRESHOLD = 32 << 20  # glibc refuses more
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Let glibc reuse freed blocks of up to 32 MiB instead of returning them to the kernel.

    Otherwise every large temporary is mapped and faulted in anew. Elsewhere this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
