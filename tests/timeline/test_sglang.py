"""The timeline of SGLang itself, in a clone that POOLBISECT_SGLANG_REPO names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbisect.history.ranges import commit_range
from poolbisect.history.repository import Repository, open_repository
from poolbisect.probes.facets import REQ_TO_TOKEN
from poolbisect.scenario import load_scenario
from poolbisect.timeline import Timeline, attribution_at, plans_for, timeline

CLONE = os.environ.get("POOLBISECT_SGLANG_REPO")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CLONE is None, reason="POOLBISECT_SGLANG_REPO names no clone of SGLang"),
]

HIDDEN, TOKENS = "req_to_hidden_states_pool", "token_table"
MAMBA = "req_index_to_mamba_index_mapping"
PING_PONG = "req_index_to_mamba_ping_pong_track_buffer_mapping"
FIRST, LAST = "84a9f5d660", "e57323cae9"  # 2025-10-01, 2026-06-07
COUNTING = "alloc(need_size), free(free_index)"
PADDED = "1..64 of 65 rows, row 0 is padding"
KEPT = "kept by MambaPool"


@pytest.fixture(scope="module")
def sglang() -> Iterator[Repository]:
    assert CLONE is not None
    with open_repository(Path(CLONE)) as repository:
        yield repository


@pytest.fixture(scope="module")
def found(sglang: Repository) -> Timeline:
    return timeline(commit_range(sglang, FIRST, LAST))


def breaches(found: Timeline) -> set[tuple[str, str, str, str]]:
    """Every transition that breaks or mends a contract."""
    return {
        (found.entry(one.position).short, one.kind.value, one.buffer, pool.value)
        for one in found.transitions
        for pool in one.pools
        if one.kind.value != "behaviour changed"
    }


def test_all_breaches_and_mendings_of_eight_months_and_no_other(found: Timeline) -> None:
    assert breaches(found) == {
        ("868403f642", "introduced", MAMBA, "hybrid"),
        # It left out an attribute of the PD decode pool, and was reverted the same day.
        ("173e0f704f", "introduced", REQ_TO_TOKEN, "hybrid-pd-decode"),
        ("d22d044734", "fixed", REQ_TO_TOKEN, "hybrid-pd-decode"),
        ("e61dabf5e4", "introduced", PING_PONG, "hybrid"),
        ("160a06cab2", "introduced", HIDDEN, "pd-decode"),
        ("eb4ba1bde2", "introduced", TOKENS, "pd-decode"),
        ("eec70286ec", "introduced", MAMBA, "hybrid-pd-decode"),
        ("eec70286ec", "introduced", PING_PONG, "hybrid-pd-decode"),
        ("2d2be5d7b2", "fixed", MAMBA, "hybrid-pd-decode"),
        ("2d2be5d7b2", "fixed", PING_PONG, "hybrid-pd-decode"),
        ("8a530468fd", "fixed", MAMBA, "hybrid"),
        ("8a530468fd", "fixed", PING_PONG, "hybrid"),
        ("cb8fbd53fc", "introduced", HIDDEN, "normal"),
        ("cb8fbd53fc", "introduced", TOKENS, "normal"),
        *(
            ("1e404afec2", "fixed", buffer, pool)
            for buffer in (HIDDEN, TOKENS)
            for pool in ("normal", "pd-decode")
        ),
    }


def test_every_commit_can_be_judged(found: Timeline) -> None:
    assert found.untestable == {}
    assert len(found.history) > 7000


@pytest.mark.parametrize(
    ("commit", "aspect", "pool", "before", "after"),
    [
        ("160a06cab2", "rows", "normal", None, None),
        ("eb4ba1bde2", "rows", "normal", None, None),
        ("027f314050", "API", "normal", COUNTING, "alloc(reqs), free(req)"),
        ("cb8fbd53fc", "slots", "normal", "0..63 of 64 rows, no padding row", PADDED),
        ("72f790bf6f", "mamba slots", "hybrid", "0..31 of 33 rows", "1..32 of 33 rows"),
        ("e57323cae9", "mamba free list", "hybrid", KEPT, "kept by MambaSlotAllocator"),
    ],
)
def test_behaviour_changes_are_named(
    found: Timeline, commit: str, aspect: str, pool: str, before: str | None, after: str | None
) -> None:
    matching = [
        one
        for one in found.transitions
        if found.entry(one.position).short == commit and one.aspect == aspect and pool in one.pools
    ]
    assert matching
    if after is not None:
        assert (matching[0].before, matching[0].after) == (before, after)


@pytest.mark.parametrize(
    ("scenario", "good", "bad", "culprit", "since"),
    [
        ("mimo-canary", "8a530468f", "1e404afec^", "cb8fbd53fc", "160a06cab2"),
        ("ngram-canary", "8a530468f", "1e404afec^", "cb8fbd53fc", "eb4ba1bde2"),
        ("mamba-canary", "868403f642^", "160a06cab2", "868403f642", "868403f642"),
        ("pd-mamba-canary", "eec70286ec^", "2d2be5d7b2^", "eec70286ec", "868403f642"),
    ],
)
def test_scenarios_lead_to_the_culprit_and_to_who_wrote_the_line(
    sglang: Repository, scenario: str, good: str, bad: str, culprit: str, since: str
) -> None:
    history = commit_range(sglang, good, bad)
    found = timeline(history, plans_for(load_scenario(scenario)))
    first = next(one for one in found.transitions if one.kind.value == "introduced")
    assert found.entry(first.position).short == culprit
    blame = attribution_at(history, first.position, found.states[first.position])[0]
    assert blame.since is not None
    assert blame.since.short == since
    assert blame.index == blame.rows
