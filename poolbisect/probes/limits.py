"""What sources under test may use, and how a process limits itself to it.

Where a platform has no such limits (Windows), the parent's clock is the only one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

_STACK = 16 << 20  # of a thread that starts later, with what the allocator keeps for it


class Limits(msgspec.Struct, frozen=True):
    """What one state of the sources may use.

    Seconds of processor time (of each thread) and in all, to both of which `seconds_per_question`
    is added for every question served; bytes of memory, None for no limit, beside what the engine
    reserves where it serves; threads, None for as many as PyTorch takes with the user's settings.
    """

    cpu_seconds: int = 20
    wall_seconds: float = 300.0
    memory: int | None = 2 << 30
    threads: int | None = 1
    seconds_per_question: float = 0.0

    def cpu_for(self, questions: int) -> int:
        return self.cpu_seconds + int(self.seconds_per_question * questions)

    def wall_for(self, questions: int) -> float:
        return self.wall_seconds + self.seconds_per_question * questions


def limit_process(limits: Limits) -> None:
    """Set what holds for as long as the process lives, and the memory."""
    try:
        import resource
    except ImportError:  # Windows: the parent's clock is the only limit there
        return
    for what in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(what, (0, 0))
    limit_memory(limits.memory)


def limit_memory(limit: int | None) -> None:
    """From now on, `limit` bytes in all, those in use included; None for no limit."""
    try:
        import resource
    except ImportError:
        return
    _set_soft_limit(resource.RLIMIT_DATA, limit)


def limit_further_memory(more: int, threads: int) -> None:
    """From now on, `more` bytes beside those in use and what so many threads need to start."""
    limit_memory(_data_in_use() + threads * _STACK + more)


def _data_in_use() -> int:
    """Bytes that count for RLIMIT_DATA, 0 where that cannot be known."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


@contextmanager
def processor_time(seconds: int) -> Iterator[None]:
    """Inside, `seconds` of it; the kernel ends the process with SIGXCPU after that."""
    try:
        import resource
    except ImportError:
        yield
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set_soft_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)
    try:
        yield
    finally:
        _set_soft_limit(resource.RLIMIT_CPU, None)


def _set_soft_limit(what: int, limit: int | None) -> None:
    import resource

    _, hard = resource.getrlimit(what)
    if limit is None or (hard != resource.RLIM_INFINITY and limit > hard):
        limit = hard
    resource.setrlimit(what, (limit, hard))
