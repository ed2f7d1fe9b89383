"""One run of the command, and what there is to read of it afterwards."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass

from poolbisect.bisection.outcome import Ending
from poolbisect.probes.command.exit_codes import by_exit
from poolbisect.probes.command.fresh_files import (
    Before,
    StaleError,
    check_run_id,
    fresh_file,
    look_before,
)
from poolbisect.probes.command.infra_signs import sign_of_infra
from poolbisect.probes.command.invocation import Place, environment, fill, used
from poolbisect.probes.command.options import CommandOptions
from poolbisect.probes.command.process import NOT_EXECUTABLE, NOT_FOUND, Finished, run_process
from poolbisect.probes.command.score_reading import (
    LostError,
    NoScoreError,
    Reading,
    UnreadableError,
    read_file,
    read_output,
)

LOG, STDOUT = "log.txt", "stdout.txt"


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that has ended: what ran where, how it ended, and its score.

    `no_score`: why there is none, where one was looked for; `unreadable` if one is stated there
    all the same. `lost`: why its score counts for nothing. `infra`: the line of its log that says
    that the host failed.
    """

    argv: tuple[str, ...]
    place: Place
    finished: Finished
    reading: Reading | None = None
    no_score: str = ""
    lost: str = ""
    infra: str | None = None
    unreadable: bool = False


def run_once(
    argv: Sequence[str], options: CommandOptions, place: Place, *, look_for_score: bool
) -> Ran:
    """Run the command at a place, into the attempt's folder, and read what it says.

    Raises:
        InfrastructureError: no process can be started, or the attempt's folder not be written.
        UsageError: a placeholder has no meaning in this history.
    """
    filled = tuple(fill(word, place) for word in argv)
    before = None
    if options.score_file is not None:
        before = look_before(
            str(place.tree / fill(options.score_file, place)),
            place.attempt,
            os.path.join(
                glob.escape(str(place.tree)), fill(options.score_file, place, glob.escape)
            ),
        )
    log, stdout = place.attempt / LOG, place.attempt / STDOUT
    finished = run_process(
        filled,
        cwd=place.tree,
        env=environment(place),
        timeout=options.timeout,
        log=log,
        stdout=stdout,
    )
    reading, no_score, lost, unreadable = None, "", "", False
    if look_for_score and by_exit(finished).ending is Ending.MEASURED:
        try:
            reading = _read(options, place, before, expected(argv, options, place))
        except (NoScoreError, StaleError) as error:
            no_score, unreadable = str(error), isinstance(error, UnreadableError)
        except LostError as error:
            lost = str(error)
    infra = None
    if finished.failure and finished.status not in (NOT_FOUND, NOT_EXECUTABLE):
        infra = finished.failure
    elif reading is None and not options.any_failure_counts:
        infra = sign_of_infra(log, options.infra_patterns)
    return Ran(filled, place, finished, reading, no_score, lost, infra, unreadable)


def expected(argv: Sequence[str], options: CommandOptions, place: Place) -> int | None:
    """How many questions the run's score should rest on, as far as the user says."""
    if "questions" not in used(argv):
        return options.asked
    if options.asked is None:
        return place.questions
    return max(min(place.questions, options.asked - place.offset), 1)


def _read(
    options: CommandOptions, place: Place, before: Before | None, asked: int | None
) -> Reading:
    if before is None:
        return read_output(place.attempt / STDOUT, place.attempt / LOG, options, asked)
    path = fresh_file(before)
    check_run_id(path, place.run_id)
    return read_file(path, options, asked)
