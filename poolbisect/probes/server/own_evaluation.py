"""An evaluation of the user's, such as lm-eval or sgl-eval, run against the server's URL."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from poolbisect.errors import InfrastructureError
from poolbisect.probes.command.exit_codes import in_words
from poolbisect.probes.command.infra_signs import last_line
from poolbisect.probes.command.options import CommandOptions
from poolbisect.probes.command.process import run_process
from poolbisect.probes.command.score_reading import (
    LostError,
    NoScoreError,
    Reading,
    read_file,
    read_output,
)
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.serving import Serving

OUT = "{out}"
_STDOUT, _LOG = "evaluation.txt", "evaluation.log"
_RESULTS = ("metrics.json", "result.json", "results.json", "results_*.json", "*.json", "*.jsonl")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluation said; `reading` is None where `finding` is not `measured`."""

    finding: Finding
    reading: Reading | None
    argv: tuple[str, ...]
    log: str = _LOG


def evaluate(serving: Serving, options: ServerOptions, folder: Path) -> Evaluated:
    """Run the evaluation, its logs in `folder`, and read its score from {out} or its output.

    A server that dies meanwhile is the ending; else an evaluation without a score is the host's.
    """
    out = folder / "evaluation"
    values = {"{url}": serving.address.url, "{model}": serving.model, OUT: str(out)}
    argv = tuple(_filled(part, values) for part in options.eval_command)
    since = serving.log.size
    try:
        finished = run_process(
            argv,
            cwd=folder,
            env=dict(os.environ),
            timeout=options.eval_timeout,
            log=folder / _LOG,
            stdout=folder / _STDOUT,
        )
    except InfrastructureError as error:
        return Evaluated(Finding(ServerEnd.HOST, str(error).rstrip(".")), None, argv)
    if not serving.alive():
        why = serving.why_it_ended(since)
        return Evaluated(why or Finding(ServerEnd.CRASH, "the server died"), None, argv)
    words = last_line(folder / _LOG)
    if finished.timed_out:
        why = serving.why_it_ended(since)
        sentence = f"the evaluation did not end within {options.eval_timeout:g} seconds"
        return Evaluated(why or Finding(ServerEnd.HANG, sentence, words), None, argv)
    try:
        reading = _read(out, folder, options)
    except LostError as error:
        return Evaluated(Finding(ServerEnd.TRANSPORT, str(error)), None, argv)
    except NoScoreError as error:
        how = in_words(finished)
        sentence = f"the evaluation gave no score ({how}): {error}"
        return Evaluated(Finding(ServerEnd.HOST, sentence, words or None), None, argv)
    return Evaluated(Finding(ServerEnd.MEASURED), reading, argv)


def _read(out: Path, folder: Path, options: ServerOptions) -> Reading:
    choice = CommandOptions(asked=options.asked)
    if not any(OUT in part for part in options.eval_command):
        return read_output(folder / _STDOUT, folder / _LOG, choice, options.asked)
    if out.is_file():
        return read_file(out, choice, options.asked)
    for pattern in _RESULTS:
        found = sorted(out.rglob(pattern))
        if found:
            return read_file(found[-1], choice, options.asked)
    raise NoScoreError(f"it wrote nothing to {OUT}")


def _filled(part: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        part = part.replace(name, value)
    return part
