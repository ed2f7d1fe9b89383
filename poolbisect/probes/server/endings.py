"""How serving a subject ended: one class, one sentence, and the log line that tells it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum

from poolbisect.bisection.outcome import Ending
from poolbisect.measurement import Ended
from poolbisect.probes.server.log_signs import Sign, find_sign, is_lost, last_words


class ServerEnd(StrEnum):
    """Every way a measurement of a server can end."""

    MEASURED = "measured"
    DEPENDENCY = "dependency"
    """Its environment cannot be built: a dependency does not install."""
    IMPORT = "import"
    """Its code does not import."""
    START = "start"
    """It ended before it was healthy, for none of the reasons below."""
    UNKNOWN_FLAG = "unknown-flag"
    """It does not know a flag, or a value of one: it cannot be asked."""
    OUT_OF_MEMORY = "out-of-memory"
    HEALTH_TIMEOUT = "health-timeout"
    CRASH = "crash"
    """Illegal access, device assert, index error, NaN in sampling, a signal of its own doing."""
    HANG = "hang"
    KILLED = "killed"
    """Somebody else ended it: the out-of-memory killer, an administrator."""
    TRANSPORT = "transport"
    """Answers were lost although the server went on."""
    PORT = "port"
    WRONG_CODE = "wrong-code"
    """What would have been imported is not the code under test."""
    HOST = "host"
    """No lease, no disk, no package index: the host's fault."""
    INTERRUPTED = "interrupted"


_FOR_THE_SEARCH = {
    ServerEnd.MEASURED: Ending.MEASURED,
    ServerEnd.DEPENDENCY: Ending.BUILD_FAILED,
    ServerEnd.IMPORT: Ending.BUILD_FAILED,
    ServerEnd.START: Ending.BUILD_FAILED,
    ServerEnd.UNKNOWN_FLAG: Ending.UNTESTABLE,
    ServerEnd.OUT_OF_MEMORY: Ending.UNTESTABLE,
    ServerEnd.HEALTH_TIMEOUT: Ending.TIMED_OUT,
    ServerEnd.CRASH: Ending.CRASHED,
    ServerEnd.HANG: Ending.TIMED_OUT,
}
_FOR_A_RUN = {
    ServerEnd.MEASURED: Ended.MEASURED,
    ServerEnd.DEPENDENCY: Ended.BUILD_FAILED,
    ServerEnd.IMPORT: Ended.BUILD_FAILED,
    ServerEnd.START: Ended.BUILD_FAILED,
    ServerEnd.UNKNOWN_FLAG: Ended.NOT_APPLICABLE,
    ServerEnd.HEALTH_TIMEOUT: Ended.TIMED_OUT,
    ServerEnd.CRASH: Ended.CRASHED,
    ServerEnd.HANG: Ended.TIMED_OUT,
    ServerEnd.INTERRUPTED: Ended.PARTIAL,
}
_OF_A_SIGN = {
    Sign.OUT_OF_MEMORY: ServerEnd.OUT_OF_MEMORY,
    Sign.ILLEGAL_ACCESS: ServerEnd.CRASH,
    Sign.DEVICE_ASSERT: ServerEnd.CRASH,
    Sign.NAN: ServerEnd.CRASH,
    Sign.INDEX: ServerEnd.CRASH,
    Sign.IMPORT: ServerEnd.IMPORT,
    Sign.UNKNOWN_FLAG: ServerEnd.UNKNOWN_FLAG,
    Sign.PORT: ServerEnd.PORT,
}
# Signals that a process brings upon itself; the others come from outside.
_OWN_SIGNALS = (
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGQUIT,
    signal.SIGSEGV,
    signal.SIGTRAP,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """An ending in words: `sentence` is whole without the log, `line` is the log's telling line."""

    end: ServerEnd
    sentence: str = ""
    line: str | None = None

    @property
    def ending(self) -> Ending:
        """For the search: what is neither the code's doing nor untestable is the host's."""
        return _FOR_THE_SEARCH.get(self.end, Ending.INFRA)

    @property
    def ended(self) -> Ended:
        """For a run's measurement."""
        return _FOR_A_RUN.get(self.end, Ended.INFRA)

    @property
    def detail(self) -> str:
        """Sentence and telling line on one line."""
        return f"{self.sentence}: {self.line}" if self.line else self.sentence


def of_an_exit(status: int, log: str, *, when: str) -> Finding:
    """Why a server's process ended by itself with `status` (negative: a signal), read in its log.

    `when` says how far it was, such as "before it was healthy". The log is believed before the
    status: SGLang's own launcher ends its whole tree with SIGKILL when a child of it fails.
    """
    how = status_words(status)
    found = find_sign(log)
    if found is not None and found.sign in _OF_A_SIGN:
        return Finding(_OF_A_SIGN[found.sign], f"{_words(found.sign, when)} ({how})", found.line)
    if found is not None:
        end = ServerEnd.START if _is_start(when) else ServerEnd.CRASH
        return Finding(end, f"the server failed {when} ({how})", found.line)
    if status < 0 and -status not in _OWN_SIGNALS:
        return Finding(ServerEnd.KILLED, f"the server was ended from outside {when} ({how})")
    if status < 0:
        return Finding(ServerEnd.CRASH, f"the server crashed {when} ({how})", last_words(log))
    end = ServerEnd.START if _is_start(when) else ServerEnd.CRASH
    return Finding(end, f"the server ended {when} ({how})", last_words(log))


def of_a_sign(log: str, *, when: str) -> Finding | None:
    """Why a server is lost whose process is still there, None as far as its log does not say so.

    Errors that a server logs and survives are none of these.
    """
    found = find_sign(log) if is_lost(log) else None
    if found is None:
        return None
    end = _OF_A_SIGN.get(found.sign, ServerEnd.START if _is_start(when) else ServerEnd.CRASH)
    return Finding(end, _words(found.sign, when), found.line)


BEFORE_HEALTH = "before it was healthy"
DURING_THE_RUN = "while it answered"


def _words(sign: Sign, when: str) -> str:
    """A sign with how far the server was, where that does not go without saying."""
    starting = sign in (Sign.IMPORT, Sign.UNKNOWN_FLAG, Sign.PORT)
    return sign.words if starting and _is_start(when) else f"{sign.words} {when}"


def _is_start(when: str) -> bool:
    return when == BEFORE_HEALTH


def status_words(status: int) -> str:
    """`exit status 1`, `SIGKILL`."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
