"""The reports of a night: of each of its runs, of the night itself, and the index over all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def write_all(night: Path, runs: Iterable[Path], out: Path) -> list[str]:
    """Render everything; a sentence for each report that could not be, the others being there.

    What was measured is saved and judged by now: no fault in drawing it may change the outcome.
    """
    parts: list[tuple[Callable[[Path], None], Path]] = [
        *((_reports, folder) for folder in (*runs, night)),
        (_index, out),
    ]
    problems: list[str] = []
    for write, folder in parts:
        try:
            write(folder)
        except Exception as error:
            problems.append(f"the reports in {folder} could not be written: {error}")
    return problems


def _reports(folder: Path) -> None:
    from poolbisect.reporting.files import write_reports

    write_reports(folder)


def _index(out: Path) -> None:
    from poolbisect.reporting.index import write_index

    write_index(out)
