"""What a command's end says of a commit, where no score does.

    0            good
    1 to 124     bad
    125          not testable, to be skipped: as for `git bisect run`
    126, 127     not testable: the command is not there, or is no program
    128 and up   crashed, and so for a signal: bad only where a crash is what is looked for

`git bisect run` takes 126 and 127 for bad (newer ones first try a good commit), and stops at 128
and above.
"""

from __future__ import annotations

import signal as signals

from poolbisect.bisection.outcome import Ending, Observation, Verdict
from poolbisect.probes.command.process import NOT_EXECUTABLE, NOT_FOUND, Finished

SKIP = 125
CRASHED = 128
"""From here on; a shell ends with 128 and the number of the signal that ended its command."""

# Whoever sends these is not the command itself; the kernel sends SIGKILL when memory runs out.
_FROM_OUTSIDE = {signals.SIGKILL, signals.SIGTERM, signals.SIGINT, signals.SIGHUP}


def by_exit(finished: Finished, *, crash_is_bad: bool = False) -> Observation:
    """Judge the end of a command by the contract above.

    With `crash_is_bad` only a crash is bad, every status below 128 but 125 to 127 is good, and a
    signal that others send is the host's.
    """
    return _by_exit(finished, crash_is_bad, scored=False)


def without_score(finished: Finished) -> Observation:
    """Judge the end of a command that should have given a score and did not: never bad."""
    return _by_exit(finished, False, scored=True)


def _by_exit(finished: Finished, crash_is_bad: bool, *, scored: bool) -> Observation:
    seconds, words = finished.seconds, in_words(finished)
    if finished.timed_out:
        return Observation.failed(Ending.TIMED_OUT, seconds=seconds, note=words)
    number = signal_of(finished)
    if finished.status is None and number is None:
        return Observation.failed(Ending.INFRA, seconds=seconds, note=words)
    if number is not None or (finished.status or 0) >= CRASHED:
        outside = number in _FROM_OUTSIDE
        ending = Ending.INFRA if crash_is_bad and outside else Ending.CRASHED
        return Observation.failed(ending, seconds=seconds, note=words)
    if finished.status in (SKIP, NOT_EXECUTABLE, NOT_FOUND):
        return Observation.failed(Ending.UNTESTABLE, seconds=seconds, note=words)
    if scored:
        note = f"{words}, and there is no score"
        return Observation.failed(Ending.UNTESTABLE, seconds=seconds, note=note)
    good = crash_is_bad or finished.status == 0
    verdict = Verdict.GOOD if good else Verdict.BAD
    return Observation.judged(verdict, seconds=seconds, note=words)


def signal_of(finished: Finished) -> int | None:
    """The signal that ended the command, or that a shell says ended its own."""
    if finished.signal is not None:
        return finished.signal
    number = (finished.status or 0) - CRASHED
    return number if 0 < number < signals.NSIG else None


def in_words(finished: Finished) -> str:
    """How a command ended, for people."""
    why = f" ({finished.failure})" if finished.failure else ""
    if finished.timed_out:
        return f"stopped after {finished.seconds:.0f} s, its time limit{why}"
    if finished.signal is not None:
        return f"ended by {_signal_name(finished.signal)}{why}"
    if finished.status is None:
        return f"lost{why}"
    if finished.failure:
        return f"did not start{why}"
    number = signal_of(finished)
    also = f", as after {_signal_name(number)}" if number is not None else ""
    skip = ", which asks to be skipped" if finished.status == SKIP else ""
    return f"exit status {finished.status}{also}{skip}"


def _signal_name(number: int) -> str:
    try:
        name = signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name}, as when memory runs out" if number == signals.SIGKILL else name
