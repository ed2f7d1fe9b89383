"""Where results lie below a folder of reports."""

from __future__ import annotations

import os
from pathlib import Path

RESULT, INDEX, ATTEMPTS = "result.json", "index.html", "attempts"


def results_below(reports: Path) -> list[Path]:
    """Every result.json of a folder of reports, sorted.

    What a bisect's attempts left is no report, and a folder below that has an index of its own,
    such as a worked example, is another collection.
    """
    found = []
    for place, folders, files in os.walk(reports):
        here = Path(place)
        if here != reports and INDEX in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name != ATTEMPTS and not name.startswith(".")]
        if RESULT in files:
            found.append(here / RESULT)
    return sorted(found)
