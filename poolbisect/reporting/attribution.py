"""Attribution in words: which buffer, which slot, whose bytes, and what came of it."""

from __future__ import annotations

from poolbisect.evidence.paired import PairedComparison
from poolbisect.judging import SubjectVerdict
from poolbisect.measurement import Measurement, ShortAccess


def attribution(verdict: SubjectVerdict) -> str:
    """Two or three sentences on a subject's out-of-range accesses; empty without any.

    Every number in it is an event the guard recorded or an answer that was compared.
    """
    measurement = verdict.measurement
    memory = measurement.memory
    if not memory.buffers:
        return ""
    sentences = [_what(buffer) for buffer in memory.buffers]
    if memory.first is not None:
        sentences.append(f"First access: {memory.first}.")
    sentences.append(_harm(measurement, verdict.comparison))
    return " ".join(sentences)


def _what(access: ShortAccess) -> str:
    reached = " and ".join(access.hit)
    return (
        f"{access.buffer} has {access.rows} rows, but {access.space} {access.index} was read "
        f"{access.reads} and written {access.writes} times; the bytes there belong to {reached}."
    )


def _harm(measurement: Measurement, comparison: PairedComparison | None) -> str:
    memory = measurement.memory
    victims, offenders = set(memory.victims), set(memory.offenders)
    first = (
        f"{_requests(len(offenders))} ran on that slot and overwrote live bytes of "
        f"{_requests(len(victims))} on other slots"
        if victims
        else f"{_requests(len(offenders))} ran on that slot; no live bytes of another request "
        "were overwritten"
    )
    if comparison is None:
        return first + "."
    if not comparison.lost and not comparison.gained:
        return first + "; no question changed between right and wrong."
    lost = set(comparison.lost_ids)
    elsewhere = lost - offenders
    overwritten = len(elsewhere & victims)
    if not lost:
        return f"{first}. No question was lost by it."
    return (
        f"{first}. Of the {len(lost)} questions lost, {_share(len(elsewhere), len(lost))} ran on "
        f"other slots, {_share(overwritten, len(elsewhere))} of those with bytes overwritten."
    )


def _share(part: int, whole: int) -> str:
    return "all" if part == whole else str(part)


def _requests(count: int) -> str:
    return f"{count} request" if count == 1 else f"{count} requests"
