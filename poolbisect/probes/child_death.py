"""How a child process ended that ran sources under test, and whose doing that was."""

from __future__ import annotations

import signal

from poolbisect.history.source_tree import SourceTree

# What only somebody outside does to a child that may not send signals: it was not the sources.
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


class ChildDiedError(Exception):
    """The child is gone; `what` says what its sources did, as in "`what` the process"."""

    def __init__(self, what: str, *, from_outside: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.from_outside = from_outside
        """Whether the host or a user ended it, for example for want of memory."""

    @classmethod
    def of(cls, status: int) -> ChildDiedError:
        how = f"with signal {-status}" if status < 0 else f"with status {status}"
        outside = -status in {getattr(signal, name, 0) for name in _FROM_OUTSIDE} - {0}
        return cls(f"ends the process that runs it {how}", from_outside=outside)

    def judged(self, tree: SourceTree) -> str:
        """The death in one sentence."""
        if self.from_outside:
            return f"{tree.name} cannot be tested: something else {self.what}."
        return f"{tree.name} itself fails: it {self.what}."
