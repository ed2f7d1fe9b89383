"""Probe untrusted sources in a child process that is limited, and replaced when they kill it."""

from __future__ import annotations

from types import TracebackType

from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.child_death import ChildDiedError
from poolbisect.probes.facets import Condition, ContractState, PoolPlan, whole
from poolbisect.probes.limited_child import LimitedChild
from poolbisect.probes.limits import Limits
from poolbisect.probes.sandbox_messages import Broken, Done, OutOfTimeError, Probe

__all__ = ["Limits", "Sandbox"]


class Sandbox:
    """A child process that judges one tree of sources after another.

    The child starts with the first probe and serves all that follow; a tree that kills it or runs
    out of time has that as its own answer, and the next one gets a new child. One thread at a time.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._child = LimitedChild(self._limits)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the child now if there is none, without waiting until it is ready.

        Raises:
            InfrastructureError: no process can be started.
        """
        self._child.start()

    def probe(self, tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
        """What `tree` answers to `plans`, serving it its own sources as it asks for them.

        Raises:
            InfrastructureError: the child cannot start, or the sources cannot be read.
        """
        try:
            answer = self._child.ask(tree, Probe(tree.name, plans), self._limits.wall_seconds)
        except OutOfTimeError:
            return self._timed_out(tree, plans)
        except ChildDiedError as death:
            gone = Condition.UNTESTABLE if death.from_outside else Condition.CRASHED
            return whole(plans, gone, death.judged(tree))
        except BaseException:
            self.close()
            raise
        match answer:
            case Done(state):
                return state
            case Broken(reason):
                detail = f"{tree.name} cannot be tested: the probe itself raised {reason}."
                return whole(plans, Condition.UNTESTABLE, detail)
        raise AssertionError(f"a probe was answered with {answer}")

    def abort(self) -> None:
        """End the child from another thread; a probe under way returns at once, with any answer."""
        self._child.abort()

    def close(self) -> None:
        """End the child."""
        self._child.close()

    def _timed_out(self, tree: SourceTree, plans: tuple[PoolPlan, ...]) -> ContractState:
        detail = (
            f"{tree.name} was stopped after {self._limits.cpu_seconds} seconds of processor time "
            f"or {self._limits.wall_seconds:g} seconds in all."
        )
        return whole(plans, Condition.TIMED_OUT, detail)
