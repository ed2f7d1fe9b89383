"""Attribution in words: which buffer, which slot, whose bytes, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.evidence.paired import PairedComparison
from poolbisect.judging import SubjectVerdict
from poolbisect.measurement import Measurement, ShortAccess
from poolbisect.pools.interface import MAMBA_MAPPINGS
from poolbisect.probes.contract import BufferContract, Lack
from poolbisect.scenario import Scenario


def attribution(verdict: SubjectVerdict) -> str:
    """Two or three sentences on a subject's out-of-range accesses; empty without any.

    Every number in it is an event the guard recorded or an answer that was compared.
    """
    measurement = verdict.measurement
    memory = measurement.memory
    padded = ""
    if memory.padded_writes:
        padded = (
            f"Padded rows wrote {memory.padded_writes} times to {_listed(memory.padded_targets)} "
            "while a request owned it."
        )
    if not memory.buffers:
        return padded
    by_buffer: dict[str, list[ShortAccess]] = {}
    for access in memory.buffers:
        by_buffer.setdefault(access.buffer, []).append(access)
    sentences = [_what(accesses) for accesses in by_buffer.values()]
    if memory.first is not None:
        sentences.append(f"First access: {memory.first}.")
    sentences.append(_harm(measurement, verdict.comparison))
    if padded:
        sentences.append(padded)
    return " ".join(sentences)


def workaround(contracts: Sequence[BufferContract], scenario: Scenario) -> str | None:
    """A server flag that makes short mappings long enough without a fix; None if none would."""
    short = [c for c in contracts if c.buffer in MAMBA_MAPPINGS and c.lacks is Lack.OTHER_SIZE]
    if not short:
        return None
    needed = max(contract.last + 1 for contract in short) * scenario.engine.dp_size
    return f"at least --max-mamba-cache-size {needed}"


def _what(accesses: list[ShortAccess]) -> str:
    """All out-of-range accesses of one buffer."""
    one, indices = accesses[0], sorted(access.index for access in accesses)
    where = f"{one.space} {indices[0]} was"
    if len(indices) > 1:
        where = f"{one.space}s {indices[0]} to {indices[-1]} were"
    reads = sum(access.reads for access in accesses)
    writes = sum(access.writes for access in accesses)
    reached = sorted({name for access in accesses for name in access.hit})
    return (
        f"{one.buffer} has {one.rows} rows, but {where} read {reads} and written {writes} times; "
        f"the bytes there belong to {_listed(reached)}."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _harm(measurement: Measurement, comparison: PairedComparison | None) -> str:
    memory = measurement.memory
    victims, offenders = set(memory.victims), set(memory.offenders)
    first = (
        f"{_requests(len(offenders))} ran on such a slot and overwrote live bytes of "
        f"{_requests(len(victims))} on other slots"
        if victims
        else f"{_requests(len(offenders))} ran on such a slot; no live bytes of another request "
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
