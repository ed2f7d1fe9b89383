"""Probe many positions at once, each worker in a sandbox of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from poolbisect.history.source_tree import SourceTree
from poolbisect.probes.facets import ContractState, PoolPlan
from poolbisect.probes.sandbox import Limits, Sandbox

Watch = Callable[[int, int], None]
"""Called with the probes done and the probes known to be needed so far."""

TreeAt = Callable[[int, int], SourceTree]
"""The sources at a position, for a worker that no other thread shares them with."""

_PROBES_WORTH_A_PROCESS = 12  # a child takes about as long to start as these take to run


class Probers:
    """As many sandboxes as workers; a sandbox starts when it is first needed."""

    def __init__(
        self,
        plans: tuple[PoolPlan, ...],
        workers: int = 1,
        limits: Limits | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.workers = max(1, workers)
        self.probed = 0
        self._plans = plans
        self._watch = watch
        self._needed = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._sandboxes = [Sandbox(limits) for _ in range(self.workers)]
        self._sandboxes[0].start()

    def __enter__(self) -> Probers:
        return self

    def __exit__(self, *_: object) -> None:
        for sandbox in self._sandboxes:
            sandbox.close()

    def probe(self, positions: Iterable[int], tree_at: TreeAt) -> dict[int, ContractState]:
        """The state at each position. Neighbours share a worker, which has their files parsed.

        Raises:
            InfrastructureError: as `Sandbox.probe`.
        """
        ordered = sorted(positions)
        self._needed += len(ordered)
        workers = min(self.workers, 1 + len(ordered) // _PROBES_WORTH_A_PROCESS)
        share = -(-len(ordered) // workers)
        found: dict[int, ContractState] = {}

        def work(worker: int, part: Sequence[int]) -> None:
            for position in part:
                if self._stop.is_set():
                    return
                state = self._sandboxes[worker].probe(tree_at(position, worker), self._plans)
                with self._lock:
                    found[position] = state
                    self.probed += 1
                    if self._watch is not None:
                        self._watch(self.probed, self._needed)

        with ThreadPoolExecutor(workers) as executor:
            jobs = [
                executor.submit(work, worker, ordered[worker * share : (worker + 1) * share])
                for worker in range(workers)
            ]
            try:
                for job in wait(jobs, return_when=FIRST_EXCEPTION).done:
                    job.result()
            except BaseException:
                # Without this, Ctrl-C would wait for the probes that are under way.
                self._stop.set()
                for sandbox in self._sandboxes:
                    sandbox.abort()
                raise
        return found
