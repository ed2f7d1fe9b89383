"""Every launch made so far; a launch that is on record is not made again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime

from poolbisect.errors import InfrastructureError
from poolbisect.measurement import Ended
from poolbisect.switches.journal import Journal
from poolbisect.switches.launch import Launch, LaunchOracle, LaunchRequest, Watch

INFRA_IN_A_ROW = 3

Announce = Callable[[LaunchRequest, str], None]


class Ledger:
    """Launches on demand, through the journal. `history` is in order, infra failures included."""

    def __init__(
        self,
        oracle: LaunchOracle,
        journal: Journal,
        announce: Announce | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._oracle = oracle
        self._journal = journal
        self._announce = announce
        self._watch = watch or _unwatched
        self._launches: dict[LaunchRequest, list[Launch]] = defaultdict(list)
        self.history: list[Launch] = []
        self.reasons: list[str] = []
        for launch in journal.recorded:
            self._enter(launch, "recorded")

    def nth(self, request: LaunchRequest, number: int, reason: str) -> Launch:
        """The launch of `request` number `number` (from 0), made now if it is not on record.

        A launch that the host spoilt does not count and is made again; InfrastructureError after
        three of them in a row.
        """
        failures = 0
        while len(self._launches[request]) <= number:
            if self._announce is not None:
                self._announce(request, reason)
            self._journal.started(request, reason, _now())
            launch = self._oracle.launch(request, self._watch)
            self._journal.ended(launch, _now())
            self._enter(launch, reason)
            failures = failures + 1 if launch.ended is Ended.INFRA else 0
            if failures == INFRA_IN_A_ROW:
                raise InfrastructureError(
                    f"{failures} launches in a row failed through no fault of the subject "
                    f"({launch.detail}); mend the host and go on with --resume"
                )
        return self._launches[request][number]

    def _enter(self, launch: Launch, reason: str) -> None:
        self.history.append(launch)
        self.reasons.append(reason)
        if launch.ended is not Ended.INFRA:
            self._launches[launch.request].append(launch)


def _unwatched(words: str) -> None:
    del words


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
