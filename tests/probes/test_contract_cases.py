"""Cases A1-A4 and A8 where no single buffer's contract shows them: kinds, crashes, dp, releases."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from poolbisect.engine.config import EngineConfig
from poolbisect.errors import InfrastructureError, NotApplicableError
from poolbisect.history.releases import fetch_release
from poolbisect.pools.interface import (
    HIDDEN_STATES,
    MAMBA_MAPPING,
    MAMBA_MAPPINGS,
    TOKEN_TABLE,
    SubjectPools,
)
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.upstream import load_upstream
from poolbisect.probes.contract import BufferContract, Lack, contracts
from poolbisect.probes.miniature import engine_config
from poolbisect.probes.subjects import UpstreamPools
from poolbisect.scenario import Scenario, load_scenario, scenario_names

VERSIONS = ("0.5.9", "0.5.10.post1", "0.5.11", "0.5.12")
# First slot without a row in any of a scenario's buffers, by release: None if there is none, "-"
# where the release has no such buffer. PD decode's hidden-states pool is short before 0.5.12 and
# its mapping from #20858 (in 0.5.10.post1) to #22462; the mamba fault was fixed in 0.5.11, which
# has the padding row's.
SHORT_FROM: dict[str, tuple[int | str | None, ...]] = {
    "mimo-canary": (None, None, 64, None),
    "mimo-canary-control": (None, None, 64, None),
    "pd-mimo-canary": (64, 64, 64, None),
    "mamba-canary": (128, 128, None, None),
    "mamba-ample": (None, None, None, None),
    "pd-mamba-canary": (None, 32, None, None),
    "ngram-canary": ("-", None, 64, None),
    "accept-length-canary": (None, None, 10, None),
}
# The first slot a pool hands out: 0, where padded rows write as well, or 1 above a padding row.
FIRST_SLOT = (0, 0, 1, 1)


def mamba_of(config: EngineConfig) -> MambaSizing | None:
    if config.max_mamba_cache_size is None:
        return None
    overlap = not config.disable_overlap_schedule
    return MambaSizing(config.mamba_slots_per_rank, config.mamba_extra_buffer, overlap)


def of_scenario(pools: SubjectPools, scenario: Scenario) -> tuple[BufferContract, ...]:
    config = engine_config(scenario.engine, scenario.memory, scenario.workload)
    return contracts(
        pools, scenario.buffers, config.slots_per_rank, config.pre_alloc_size, mamba_of(config)
    )


def first_short(found: tuple[BufferContract, ...]) -> int | None:
    return min((one.short_from for one in found if one.short_from is not None), default=None)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], UpstreamPools]:
    """Pools of a release; skips offline, except in CI."""
    folder: Path = tmp_path_factory.mktemp("releases")
    loaded: dict[str, UpstreamPools] = {}

    def load(version: str) -> UpstreamPools:
        if version not in loaded:
            try:
                loaded[version] = UpstreamPools(load_upstream(fetch_release(version, folder)))
            except InfrastructureError:
                if os.environ.get("CI"):
                    raise
                pytest.skip("no package index can be reached")
        return loaded[version]

    yield load  # type: ignore[misc]
    shutil.rmtree(folder, ignore_errors=True)


def test_every_shipped_scenario_has_a_row_in_the_table() -> None:
    assert set(SHORT_FROM) == set(scenario_names())


@pytest.mark.network
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SHORT_FROM)
def test_what_each_release_lacks_for_each_scenario(
    upstream: Callable[[str], UpstreamPools], name: str, version: str
) -> None:
    at = VERSIONS.index(version)
    expected = SHORT_FROM[name][at]
    pools, scenario = upstream(version), load_scenario(name)
    if expected == "-":
        with pytest.raises(NotApplicableError, match=f"sglang {version} allocates no token_table"):
            of_scenario(pools, scenario)
        return
    found = of_scenario(pools, scenario)
    assert first_short(found) == expected
    assert {one.first for one in found} == {FIRST_SLOT[at]}


@pytest.mark.parametrize("name", SHORT_FROM)
def test_shipped_subjects_are_short_exactly_where_a_buffer_is_at_fault(name: str) -> None:
    """A control's buffer may be short with no harm done; slot 0 is no matter of length."""
    scenario = load_scenario(name)
    for subject in scenario.subjects:
        found = of_scenario(ShippedPools(subject.name, scenario.pools), scenario)
        if name == "mimo-canary-control":
            assert (first_short(found) is not None) == (subject.name == "original")
        elif name == "accept-length-canary":
            assert first_short(found) is None
            expected_first = 0 if subject.expect == "bad" else 1
            assert {one.first for one in found} == {expected_first}
        else:
            assert (first_short(found) is not None) == (subject.expect == "bad")


def test_a1_the_shipped_consumers_are_the_two_and_the_mappings_are_clean() -> None:
    pools = ShippedPools("original")
    buffers = [HIDDEN_STATES, TOKEN_TABLE, *MAMBA_MAPPINGS]
    found = contracts(pools, buffers, 8, mamba=MambaSizing(8, extra_buffer=True))
    assert [one.missing for one in found] == [1, 1, 0, 0]
    assert [one.short_from for one in found] == [8, 8, None, None]
    assert [one.lacks for one in found] == [Lack.PADDING_ROW, Lack.PADDING_ROW, None, None]
    assert [one.rows for one in found] == [8, 8, 9, 9]


@pytest.mark.parametrize("overlap", [True, False])
def test_a2_the_ping_pong_mapping_is_short_whatever_its_width(overlap: bool) -> None:
    pools = ShippedPools("original", "mamba")
    mamba = MambaSizing(3, extra_buffer=True, overlap=overlap)
    for one in contracts(pools, MAMBA_MAPPINGS, 8, mamba=mamba):
        assert (one.rows, one.short_from, one.last) == (3, 3, 7)


@pytest.mark.parametrize(
    ("running", "mamba", "dp_size", "rows", "short_from", "last"),
    [
        (7, 5, 2, 2, 2, 2),  # 3 slots and 2 mamba slots on each rank
        (8, 1, 1, 1, 1, 7),
        (8, 8, 1, 8, None, 7),
        (8, 9, 1, 9, None, 7),
        (9, 9, 2, 4, None, 3),
        (257, 257, 8, 32, None, 31),
        (8, 8, 8, 1, None, 0),
    ],
)
def test_a2_shares_of_ranks_are_what_is_compared(
    running: int, mamba: int, dp_size: int, rows: int, short_from: int | None, last: int
) -> None:
    config = EngineConfig(
        max_running_requests=running,
        max_mamba_cache_size=mamba,
        dp_size=dp_size,
        speculative_num_steps=0,
        speculative_num_draft_tokens=1,
    )
    (one,) = contracts(
        ShippedPools("original", "mamba"),
        [MAMBA_MAPPING],
        config.slots_per_rank,
        mamba=mamba_of(config),
    )
    assert (one.rows, one.short_from, one.last) == (rows, short_from, last)


@pytest.mark.parametrize("version", [None, "0.5.10.post1"])
@pytest.mark.network
def test_a3_the_failing_slot_is_the_one_the_pool_dies_at(
    upstream: Callable[[str], UpstreamPools], version: str | None
) -> None:
    """Computed first, then met: the pool's own tensor raises at the slot the contract names."""
    pools = ShippedPools("original", "pd-mamba") if version is None else upstream(version)
    (one,) = contracts(pools, [MAMBA_MAPPING], 32, 32, MambaSizing(32))
    assert (one.rows, one.short_from, one.last, one.lacks) == (32, 32, 63, Lack.OTHER_SIZE)
    pool = pools.make_hybrid_pool(32, 8, "cpu", mamba_size=32, pre_alloc_size=32)
    assert pool.mamba_pool.size == 32
    mapping = pool.req_index_to_mamba_index_mapping
    mapping[[31]] = mapping[[0]]
    with pytest.raises(IndexError, match="index 32 is out of bounds for dimension 0 with size 32"):
        mapping[[one.short_from]] = mapping[[0]]


@pytest.mark.parametrize("state", ["unpadded", "original", "corrected"])
def test_a4_the_smallest_decode_pool(state: str) -> None:
    (one,) = contracts(ShippedPools(state), [HIDDEN_STATES], 1, 0)
    assert one.last - one.first == 0
    assert one.short_from == (1 if state == "original" else None)


def test_a8_rows_above_the_last_slot_are_no_evidence() -> None:
    """`req_to_token` has a row more than there are slots; whoever has as many is not short."""
    pool = ShippedPools("unpadded").make_pool(8, 4, "cpu")
    assert pool.req_to_token.shape[0] == 8
    (one,) = contracts(ShippedPools("unpadded"), [HIDDEN_STATES], 8)
    assert (one.rows, one.last, one.missing, one.lacks) == (8, 7, 0, None)
