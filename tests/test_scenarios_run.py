"""Scenarios run whole: padded writes (case A5), workarounds, and what upstream's releases get."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec
import pytest

from poolbisect.baselines import BaselineComparison
from poolbisect.canary import RunReport, RunRequest, run
from poolbisect.errors import InfrastructureError
from poolbisect.evidence.verdict import Verdict
from poolbisect.history.releases import fetch_release
from poolbisect.judging import SubjectVerdict, judge_subject
from poolbisect.measurement import (
    Answer,
    Ended,
    Measurement,
    MemoryEvents,
    Outcome,
    ShortAccess,
    SlotUse,
)
from poolbisect.pools.interface import HIDDEN_STATES, MAMBA_MAPPING, MAMBA_MAPPINGS, TOKEN_TABLE
from poolbisect.scenario import load_scenario, scenario_names

GOOD, BAD = Verdict.GOOD, Verdict.BAD
VERSIONS = ("0.5.9", "0.5.10.post1", "0.5.11", "0.5.12")
# What upstream's history implies for each release; None where the buffer did not exist yet.
VERDICTS: dict[str, tuple[Verdict | None, ...]] = {
    "mimo-canary": (GOOD, GOOD, BAD, GOOD),
    "mimo-canary-control": (GOOD, GOOD, GOOD, GOOD),
    "pd-mimo-canary": (BAD, BAD, BAD, GOOD),
    "mamba-canary": (BAD, BAD, GOOD, GOOD),
    "mamba-ample": (GOOD, GOOD, GOOD, GOOD),
    "pd-mamba-canary": (GOOD, BAD, GOOD, GOOD),
    "ngram-canary": (None, GOOD, BAD, GOOD),
    "accept-length-canary": (BAD, BAD, GOOD, GOOD),
}
# Enough questions for the faults, which are large, but not for the small drops that a scenario asks
# about: here only a drop of SMALLEST_DROP has to be excluded.
QUESTIONS = {
    "mimo-canary": 400,
    "mimo-canary-control": 400,
    "pd-mimo-canary": 400,
    "mamba-canary": 400,
    "mamba-ample": 400,
    "pd-mamba-canary": 400,
    "ngram-canary": 300,
    "accept-length-canary": 400,
}
SMALLEST_DROP = 0.05
BUFFERS = {
    "mimo-canary": {HIDDEN_STATES},
    "mimo-canary-control": {HIDDEN_STATES},
    "pd-mimo-canary": {HIDDEN_STATES},
    "mamba-canary": set(MAMBA_MAPPINGS),
    "mamba-ample": set(),
    "pd-mamba-canary": {MAMBA_MAPPING},
    "ngram-canary": {TOKEN_TABLE},
    "accept-length-canary": {HIDDEN_STATES},
}


def verdicts_of(report: RunReport) -> dict[str, SubjectVerdict]:
    return {verdict.measurement.subject: verdict for verdict in report.verdicts}


@pytest.fixture(scope="module")
def fetched() -> None:
    """Skips offline, except in CI."""
    try:
        for version in VERSIONS:
            fetch_release(version)
    except InfrastructureError:
        if os.environ.get("CI"):
            raise
        pytest.skip("no package index can be reached")


def test_the_table_has_a_row_for_every_scenario() -> None:
    assert set(VERDICTS) == set(QUESTIONS) == set(BUFFERS) == set(scenario_names())


@pytest.mark.network
@pytest.mark.full
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", VERDICTS)
def test_each_release_gets_the_verdict_that_upstreams_history_implies(name: str) -> None:
    expected = {
        f"release:{version}": verdict
        for version, verdict in zip(VERSIONS, VERDICTS[name], strict=True)
    }
    scenario = load_scenario(name)
    if QUESTIONS[name] < scenario.workload.questions:
        judging = msgspec.structs.replace(scenario.judging, smallest_drop=SMALLEST_DROP)
        scenario = msgspec.structs.replace(scenario, judging=judging)
    report = run(RunRequest(scenario, tuple(expected), QUESTIONS[name]))
    found = verdicts_of(report)
    for subject, verdict in expected.items():
        one = found[subject]
        if verdict is None:
            assert one.measurement.ended is Ended.NOT_APPLICABLE, subject
            assert one.verdict is Verdict.UNTESTABLE
            continue
        assert one.verdict is verdict, (subject, one.reason)
        if name == "pd-mamba-canary" and verdict is BAD:
            assert one.measurement.ended is Ended.CRASHED
            assert "index 32 is out of bounds for dimension 0 with size 32" in one.reason
            continue
        assert one.measurement.ended is Ended.MEASURED, one.measurement.detail
        # The guard agrees with the contract, access by access.
        short = {c.buffer: c.short_from for c in report.contracts[subject] if c.missing}
        memory = one.measurement.memory
        assert {access.buffer for access in memory.buffers} == set(short)
        for access in memory.buffers:
            assert access.buffer in BUFFERS[name]
            assert access.index >= (short[access.buffer] or 0)
        # Writes of padded rows to slot 0 hurt where slot 0 is a request's.
        if name == "accept-length-canary":
            assert (memory.padded_writes > 0) == (verdict is BAD)


@pytest.fixture(scope="module")
def padded_writes() -> dict[str, SubjectVerdict]:
    """Case A5's mechanism: `accept-length-canary` with fewer questions."""
    scenario = load_scenario("accept-length-canary")
    return verdicts_of(run(RunRequest(scenario, questions=160)))


def test_a5_padded_rows_write_slot_0_only_while_it_has_an_owner(
    padded_writes: dict[str, SubjectVerdict],
) -> None:
    bad = padded_writes["unpadded"].measurement.memory
    assert bad.padded_writes > 0
    assert bad.padded_targets == (f"request slot 0 of {HIDDEN_STATES}",)
    good = padded_writes["corrected"].measurement.memory
    assert (good.padded_writes, good.padded_targets) == (0, ())
    for memory in (bad, good):
        assert memory.reads + memory.writes == 0


def test_a5_answers_are_equal_and_only_slot_0_loses_accept_length(
    padded_writes: dict[str, SubjectVerdict],
) -> None:
    good, bad = (padded_writes[name].measurement for name in ("corrected", "unpadded"))
    assert [a.tokens for a in good.answers] == [a.tokens for a in bad.answers]
    changes: dict[int, list[float]] = {}
    for before, after in zip(good.answers, bad.answers, strict=True):
        assert after.slot is not None
        assert before.accept_length is not None
        assert after.accept_length is not None
        changes.setdefault(after.slot, []).append(after.accept_length - before.accept_length)
    assert sum(changes.pop(0)) < 0
    assert all(change == 0 for slot in changes.values() for change in slot)
    assert good.accept_length is not None
    assert bad.accept_length is not None
    assert bad.accept_length < good.accept_length


def test_a5_without_padded_writes_or_with_stale_slots_of_nobody_nothing_falls() -> None:
    """The same pools and workload, the padded rows silent: the cause is the writes."""
    shipped = load_scenario("accept-length-canary")
    memory = msgspec.structs.replace(shipped.memory, padded_writes=False)
    scenario = msgspec.structs.replace(shipped, memory=memory)
    found = verdicts_of(run(RunRequest(scenario, questions=120)))["unpadded"]
    assert found.verdict is GOOD
    assert found.reason == "no question's accept length differs"
    assert found.measurement.memory.padded_writes == 0


def eight(subject: str, first_length: float, memory: MemoryEvents) -> Measurement:
    """Eight right answers, all with accept length 3.0 but the first."""
    answers = tuple(
        Answer(
            id=n, prompt="1+1:", expected=2, text="1+1=2", outcome=Outcome.RIGHT, rank=0, slot=n,
            finish="stop", accept_length=3.0 if n else first_length, tokens=(4,),
        )
        for n in range(8)
    )  # fmt: skip
    mean = (first_length + 21.0) / 8
    use = SlotUse(7, True, 1.0, 1, 8)
    return Measurement(subject, Ended.MEASURED, "", 8, answers, mean, use, memory, 1.0, 8)


def judged_a5(memory: MemoryEvents) -> SubjectVerdict:
    scenario = load_scenario("accept-length-canary")
    good = eight("corrected", 3.0, MemoryEvents(watched=True))
    bad = eight("unpadded", 0.55, memory)
    return judge_subject(bad, good, scenario, None, BaselineComparison(""))


def test_a5_one_request_of_eight_is_a_regression_when_the_guard_saw_the_writes() -> None:
    """One question cannot be significant by counting; the recorded writes to its slot are."""
    seen = MemoryEvents(
        watched=True, padded_writes=11, padded_targets=(f"request slot 0 of {HIDDEN_STATES}",)
    )
    verdict = judged_a5(seen)
    assert verdict.verdict is BAD
    assert "slot 0" in verdict.reason
    assert HIDDEN_STATES in verdict.reason


def test_a5_one_request_of_eight_without_a_recorded_cause_is_not_good() -> None:
    """Too few questions to call it noise or a fall."""
    assert judged_a5(MemoryEvents(watched=True)).verdict is not GOOD


def test_a_drop_beside_recorded_accesses_is_bad_though_the_last_slot_was_not_reached(
    measured: Callable[..., Measurement],
) -> None:
    """A mapping short from slot 128 on fails long before slot 255 has been used."""
    access = ShortAccess(MAMBA_MAPPING, "request slot", 128, 128, (MAMBA_MAPPING,), 3, 40, 2)
    seen = MemoryEvents(watched=True, reads=40, writes=2, buffers=(access,), offenders=(128,))
    unreached = {"last_slot_used": False}
    bad = measured("original", 200, wrong=range(120), memory=seen, **unreached)
    verdict = judge_subject(
        bad,
        measured("corrected", 200, **unreached),
        load_scenario("mamba-canary"),
        256,
        BaselineComparison(""),
    )
    assert verdict.verdict is BAD


def test_no_drop_beside_recorded_accesses_is_not_good_while_slots_are_unreached(
    measured: Callable[..., Measurement],
) -> None:
    access = ShortAccess(MAMBA_MAPPING, "request slot", 128, 128, (MAMBA_MAPPING,), 3, 40, 2)
    seen = MemoryEvents(watched=True, reads=40, writes=2, buffers=(access,), offenders=(128,))
    verdict = judge_subject(
        measured("original", 1319, memory=seen, last_slot_used=False),
        measured("corrected", 1319, last_slot_used=False),
        load_scenario("mamba-canary"),
        256,
        BaselineComparison(""),
    )
    assert verdict.verdict.value == "unknown"
    assert "the last request slot was not used" in verdict.reason
