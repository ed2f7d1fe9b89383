"""Serve problems on upstream's code of any state, in a limited child process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from poolbisect.errors import UsageError
from poolbisect.history.source_tree import SourceTree
from poolbisect.measurement import Ended, Measurement, MemoryEvents
from poolbisect.probes.child_death import ChildDiedError
from poolbisect.probes.contract import BufferContract
from poolbisect.probes.inspection import Inspection
from poolbisect.probes.limited_child import LimitedChild
from poolbisect.probes.limits import Limits
from poolbisect.probes.miniature import Settings, Tick
from poolbisect.probes.sandbox_messages import (
    Answer,
    Broken,
    Fault,
    Inspect,
    Inspected,
    OutOfTimeError,
    Refused,
    Serve,
    Served,
    Ticked,
)
from poolbisect.scenario import Scenario

__all__ = ["SERVING_LIMITS", "ApartServer", "Limits"]

SERVING_LIMITS = Limits(cpu_seconds=60, threads=None, seconds_per_question=0.25)
"""Some twenty times what the shipped scenarios take, with as many threads as without a child."""


class ApartServer:
    """A child process that serves one tree of sources after another on the miniature engine.

    No code of a tree runs in this process. The child starts when it is first needed and keeps its
    model for all trees that follow; a tree that kills it or runs out of time has that as its own
    ending, and the next one gets a new child. One thread at a time.
    """

    def __init__(self, limits: Limits = SERVING_LIMITS) -> None:
        self._limits = limits
        self._device = "cpu"
        self._child = LimitedChild(limits)

    def __enter__(self) -> ApartServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, device: str = "cpu") -> None:
        """Start the child now if there is none for `device`, without waiting until it is ready.

        Raises:
            InfrastructureError: no process can be started.
        """
        self._use(device)
        self._child.start()

    def close(self) -> None:
        """End the child."""
        self._child.close()

    def inspect(self, tree: SourceTree, scenario: Scenario) -> Inspection:
        """The contracts of the scenario's buffers in `tree`, and how many questions reach its last
        slot. Nothing is served, no model is loaded.

        Raises:
            UsageError: the engine cannot serve such a scenario.
            InfrastructureError: the child cannot start, or the sources cannot be read.
        """
        try:
            answer = self._child.ask(tree, Inspect(tree.name, scenario), self._limits.wall_for(0))
        except OutOfTimeError:
            return Inspection(ended=Ended.TIMED_OUT, detail=self._out_of_time(tree, 0))
        except ChildDiedError as death:
            return Inspection(ended=_ending(death), detail=death.judged(tree))
        except BaseException:
            self.close()
            raise
        match answer:
            case Inspected(rows, needed, ended, detail):
                found = tuple(
                    BufferContract(one.buffer, one.space, one.rows, one.first, one.last)
                    for one in rows
                )
                return Inspection(found, needed, ended, detail)
            case Broken(reason):
                return Inspection(ended=Ended.BUILD_FAILED, detail=_broken(tree, reason))
        raise _refusal(answer)

    def measure(
        self,
        subject: str,
        tree: SourceTree,
        scenario: Scenario,
        first: int,
        count: int,
        settings: Settings,
        watch: Callable[[Tick], None] | None = None,
    ) -> Measurement:
        """Serve problems `first`..`first + count - 1` (from 0) of the scenario's task on `tree`.

        Answers, accept lengths and memory events are those `poolbisect.probes.miniature.measure`
        gives on the same code. Endings: the tree raises, dies, or needs more memory than it may:
        CRASHED; too slow: TIMED_OUT; it asks for what our stand-ins lack, or the probe raises by
        itself: BUILD_FAILED; it has no such pool or buffer: NOT_APPLICABLE; strict mode found a
        breach: STOPPED; the child is killed from outside or the engine is out of memory: INFRA;
        Ctrl-C: PARTIAL, with what was answered until then.

        Raises:
            UsageError: the engine cannot serve such a scenario, or has no such problems.
            InfrastructureError: the child cannot start, or the sources cannot be read.
            KeyboardInterrupt: it came while nothing was being served, or twice.
        """
        self._use(settings.device)
        question = Serve(
            *(tree.name, subject, scenario, first, count),
            *(settings.memory, settings.device, settings.seed),
        )

        def on_tick(tick: Ticked) -> None:
            if watch is not None:
                watch(Tick(tick.done, tick.right, tick.tokens, tick.seconds))

        started = time.perf_counter()

        def unserved(ended: Ended, detail: str) -> Measurement:
            seconds = time.perf_counter() - started
            nothing = MemoryEvents(watched=False)
            return Measurement(
                subject, ended, detail, count, (), None, None, nothing, seconds, tokens=0
            )

        try:
            answer = self._child.ask(tree, question, self._limits.wall_for(count), on_tick)
        except OutOfTimeError:
            return unserved(Ended.TIMED_OUT, self._out_of_time(tree, count))
        except ChildDiedError as death:
            return unserved(_ending(death), death.judged(tree))
        except KeyboardInterrupt:
            return self._interrupted(tree)
        match answer:
            case Served(measurement):
                return measurement
            case Broken(reason):
                return unserved(Ended.BUILD_FAILED, _broken(tree, reason))
            case Refused(Fault.HOST, reason):
                return unserved(Ended.INFRA, f"{tree.name} cannot be tested: {reason}.")
        raise _refusal(answer)

    def _interrupted(self, tree: SourceTree) -> Measurement:
        answer = self._child.wind_up(tree)
        if not isinstance(answer, Served):
            raise KeyboardInterrupt
        measurement = answer.measurement
        if measurement.ended is Ended.MEASURED:
            asked = measurement.asked
            detail = f"interrupted after {asked} of {asked} questions"
            return replace(measurement, ended=Ended.PARTIAL, detail=detail)
        return measurement

    def _use(self, device: str) -> None:
        if device == self._device:
            return
        self._child.close()
        self._child = LimitedChild(self._limits, device)
        self._device = device

    def _out_of_time(self, tree: SourceTree, questions: int) -> str:
        return (
            f"{tree.name} was stopped after {self._limits.cpu_for(questions)} seconds of "
            f"processor time a thread, or {self._limits.wall_for(questions):g} seconds in all."
        )


def _ending(death: ChildDiedError) -> Ended:
    return Ended.INFRA if death.from_outside else Ended.CRASHED


def _broken(tree: SourceTree, reason: str) -> str:
    return f"{tree.name} cannot be tested: the probe itself raised {reason}."


def _refusal(answer: Answer) -> Exception:
    if isinstance(answer, Refused) and answer.fault is Fault.USAGE:
        return UsageError(answer.reason)
    return AssertionError(f"the child answered with {answer}")
