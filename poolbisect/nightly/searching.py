"""The cause of a new finding: whether the code can be it, and if so which commit."""

from __future__ import annotations

from dataclasses import replace

from poolbisect.errors import PoolbisectError
from poolbisect.evidence.findings import SeriesFinding
from poolbisect.nightly.culprit import find_culprit
from poolbisect.nightly.document import relative
from poolbisect.nightly.findings import Finding, why_no_search
from poolbisect.nightly.judging import Judged
from poolbisect.nightly.request import Display
from poolbisect.nightly.running import RunningNight

_COMMIT = "commit:"


def with_cause(
    night: RunningNight,
    found: Finding,
    judged: Judged,
    series: SeriesFinding | None,
    display: Display,
) -> Finding:
    """A new finding with its culprit where it has one, or with why none is looked for.

    A search that fails is said in the finding, and stops nothing.
    """
    if (why := why_no_search(found, series)) is not None:
        return replace(found, text=f"{found.text}; {why}")
    repository, ends = night.request.repo, _ends(judged)
    if ends is None or repository is None:
        return found
    good, bad = ends
    display.says(f"{found.key}: looking for the culprit in {good[:10]}..{bad[:10]}")
    try:
        culprit = find_culprit(
            repository,
            good,
            bad,
            judged.tonight.scenario,
            bisect=night.request.out if night.request.bisect else None,
            command=night.request.command,
        )
    except KeyboardInterrupt:
        night.interrupted = True
        return found
    except PoolbisectError as error:
        return replace(found, text=f"{found.text}; no culprit was found: {error}")
    if culprit.report is not None:
        night.bisects.append(culprit.report)
    entry = culprit.entry
    if entry is not None:
        report = None if culprit.report is None else relative(culprit.report, night.folder)
        entry = {**entry, "confirmed": culprit.confirmed, "report": report}
    return replace(found, culprit=entry, text=f"{found.text}; {culprit.text}")


def _ends(judged: Judged) -> tuple[str, str] | None:
    """The last good night's commit and tonight's, where both are commits."""
    good = judged.tonight.last_good
    before = None if good is None else good.night.revision
    after = judged.tonight.revision
    if before is None or after is None:
        return None
    if not (before.startswith(_COMMIT) and after.startswith(_COMMIT)):
        return None
    return before.removeprefix(_COMMIT), after.removeprefix(_COMMIT)
