"""The hybrid model on the engine: its own answers, and mappings short, long and out of range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from poolbisect.engine.config import Behind, EngineConfig, MappingAccess
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Finish, Request
from poolbisect.errors import UsageError
from poolbisect.measurement import Ended
from poolbisect.memory.guard import MemoryMode, OutOfRangeError
from poolbisect.models.hybrid import HybridMiniature
from poolbisect.models.loading import LoadedModel, load_hybrid
from poolbisect.models.training import greedy_answers
from poolbisect.pools.interface import MAMBA_MAPPING, MAMBA_MAPPINGS, PING_PONG_MAPPING
from poolbisect.pools.leak_check import leaked_slots
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.miniature import Settings, measure
from poolbisect.scenario import Memory, load_scenario
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems

Answered = Callable[..., tuple[list[Request], Engine]]
COUNT = 24
CHECKED, UNCHECKED = MappingAccess.CHECKED, MappingAccess.UNCHECKED


@pytest.fixture(scope="module")
def model() -> HybridMiniature:
    return load_hybrid()


@pytest.fixture(scope="module")
def own(model: HybridMiniature) -> list[str]:
    """What the model itself writes to the first problems, computed without any cache."""
    problems = load_problems(NAME, COUNT)
    return greedy_answers(lambda tokens: model.logits(model.hidden_states(tokens)), problems, 96)


def texts(asked: list[Request]) -> list[str]:
    return [arithmetic.decode(request.output) for request in asked]


def all_given_back(engine: Engine) -> bool:
    for rank in engine.ranks:
        mamba = rank.pool.mamba_pool  # type: ignore[attr-defined]
        first = min(mamba.free_slots)
        assert sorted(mamba.free_slots) == list(range(first, first + mamba.size))
        assert leaked_slots(rank.pool) == 0
        assert not rank.slots.owners
        assert not rank.future.space.owners
        assert sorted(rank.allocator.free) == list(range(1, rank.allocator.pages + 1))
    return True


@pytest.mark.parametrize("access", list(MappingAccess))
@pytest.mark.parametrize("dp_size", [1, 2])
@pytest.mark.parametrize("at_once", [1, 12])
def test_the_engine_writes_what_the_model_itself_writes(
    model: HybridMiniature,
    own: list[str],
    answered: Answered,
    at_once: int,
    dp_size: int,
    access: MappingAccess,
) -> None:
    asked, engine = answered(
        model,
        ShippedPools("corrected", "mamba"),
        COUNT,
        dp_size=dp_size,
        max_running_requests=at_once * dp_size,
        max_mamba_cache_size=at_once * dp_size,
        mapping_access=access,
    )
    assert texts(asked) == own
    assert all(request.finished is Finish.STOP for request in asked)
    assert all_given_back(engine)


@pytest.mark.parametrize("dp_size", [1, 2])
@pytest.mark.parametrize("state", ["corrected", "padded", "original", "unreserved"])
def test_padded_graph_rows_touch_nobodys_state(
    model: HybridMiniature, own: list[str], answered: Answered, state: str, dp_size: int
) -> None:
    """Five requests run in a graph of eight rows; the three others have no mamba slot."""
    asked, engine = answered(
        model,
        ShippedPools(state, "mamba"),
        COUNT,
        dp_size=dp_size,
        max_running_requests=9 * dp_size,
        max_mamba_cache_size=9 * dp_size,
        cuda_graph_max_bs=8,
        concurrency=5 * dp_size,
    )
    assert texts(asked) == own
    assert all_given_back(engine)
    assert all(rank.guard.reads + rank.guard.writes == 0 for rank in engine.ranks)


@pytest.mark.parametrize("without_overlap", [False, True])
@pytest.mark.parametrize("mamba", [3, 12, 15, 40])
def test_ping_pong_slots_are_taken_and_given_back(
    model: HybridMiniature,
    own: list[str],
    answered: Answered,
    mamba: int,
    without_overlap: bool,
) -> None:
    most: list[int] = []
    asked, engine = answered(
        model,
        ShippedPools("corrected", "mamba"),
        COUNT,
        dp_size=1,
        max_running_requests=5,
        max_mamba_cache_size=mamba,
        mamba_extra_buffer=True,
        disable_overlap_schedule=without_overlap,
        watch=lambda engine: most.append(len(engine.ranks[0].slots.owners)),
    )
    (rank,) = engine.ranks
    width = 1 if without_overlap else 2
    assert tuple(rank.buffers[PING_PONG_MAPPING].tensor.shape) == (5, width)
    assert max(most) == min(5, mamba // (1 + width))
    assert texts(asked) == own
    assert all_given_back(engine)


@pytest.mark.parametrize("mamba", [1, 8, 20])
def test_one_mamba_slot_as_many_as_requests_and_more(
    model: HybridMiniature, own: list[str], answered: Answered, mamba: int
) -> None:
    most: list[int] = []
    asked, engine = answered(
        model,
        ShippedPools("corrected", "mamba"),
        COUNT,
        dp_size=1,
        max_running_requests=8,
        max_mamba_cache_size=mamba,
        watch=lambda engine: most.append(len(engine.ranks[0].slots.owners)),
    )
    assert texts(asked) == own
    assert max(most) == min(mamba, 8)
    assert engine.ranks[0].slots.used == set(range(8))
    assert all_given_back(engine)


def test_ranks_get_whole_shares_when_dp_does_not_divide(
    model: HybridMiniature, own: list[str], answered: Answered
) -> None:
    asked, engine = answered(
        model,
        ShippedPools("corrected", "mamba"),
        COUNT,
        dp_size=2,
        max_running_requests=7,
        max_mamba_cache_size=5,
    )
    for rank in engine.ranks:
        assert rank.slots.used == {0, 1, 2}
        assert rank.pool.mamba_pool.size == 2  # type: ignore[attr-defined]
    assert texts(asked) == own
    assert all_given_back(engine)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_mamba_cache_size": 1, "dp_size": 2}, "--max-mamba-cache-size 1 leaves no mamba"),
        (
            {"max_mamba_cache_size": 2, "dp_size": 1, "mamba_extra_buffer": True},
            "--max-mamba-cache-size 2",
        ),
        ({"max_mamba_cache_size": None, "dp_size": 1}, "--max-mamba-cache-size"),
        (
            {"speculative_num_steps": 3, "speculative_num_draft_tokens": 4, "dp_size": 1},
            "--speculative-num-steps 3",
        ),
    ],
)
def test_a_server_that_could_not_answer_is_refused_in_one_sentence(
    model: HybridMiniature, answered: Answered, settings: dict[str, object], words: str
) -> None:
    pools = ShippedPools("corrected", "mamba")
    whole = {"max_running_requests": 4, "max_mamba_cache_size": 4, **settings}
    with pytest.raises(UsageError, match=words) as refused:
        answered(model, pools, 4, **whole)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mamba", [1, 3, 7])
@pytest.mark.parametrize("slots", [8])
def test_unchecked_accesses_start_at_the_mamba_size(
    model: HybridMiniature, answered: Answered, slots: int, mamba: int
) -> None:
    """Case A2 met in a run: both mappings, at slots from the mamba size on and at no other."""
    asked, engine = answered(
        model,
        ShippedPools("original", "mamba"),
        COUNT,
        dp_size=1,
        max_running_requests=slots,
        max_mamba_cache_size=mamba,
        mapping_access=UNCHECKED,
        behind_hidden_states=Behind.NOTHING,
    )
    guard = engine.ranks[0].guard
    assert set(guard.tallies) == {(MAMBA_MAPPING, slot) for slot in range(mamba, slots)}
    assert all(tally.rows == mamba for tally in guard.tallies.values())
    beyond = {r.id for r in asked if r.slot_held is not None and r.slot_held >= mamba}
    assert guard.offenders == beyond


def test_both_mappings_are_short_with_the_extra_buffer(
    model: HybridMiniature, answered: Answered
) -> None:
    _, engine = answered(
        model,
        ShippedPools("original", "mamba"),
        COUNT,
        dp_size=1,
        max_running_requests=8,
        max_mamba_cache_size=6,
        mamba_extra_buffer=True,
    )
    found = engine.ranks[0].guard.tallies
    assert set(found) == {(name, slot) for name in MAMBA_MAPPINGS for slot in (6, 7)}


def test_silent_and_guard_give_identical_outputs(
    model: HybridMiniature, answered: Answered
) -> None:
    pools = ShippedPools("original", "mamba")
    settings = {"dp_size": 1, "max_running_requests": 16, "max_mamba_cache_size": 6}
    silent, _ = answered(model, pools, 60, memory=MemoryMode.SILENT, **settings)
    guarded, _ = answered(model, pools, 60, **settings)
    assert texts(silent) == texts(guarded)
    with pytest.raises(OutOfRangeError, match=rf"{MAMBA_MAPPING}\[6\] of 6 rows"):
        answered(model, pools, 60, memory=MemoryMode.STRICT, **settings)


def test_checked_access_raises_at_the_first_slot_without_a_row(
    model: HybridMiniature, answered: Answered
) -> None:
    settings = {"dp_size": 1, "max_running_requests": 8, "max_mamba_cache_size": 3}
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        answered(model, ShippedPools("original", "mamba"), 24, mapping_access=CHECKED, **settings)
    asked, _ = answered(
        model, ShippedPools("corrected", "mamba"), 24, mapping_access=CHECKED, **settings
    )
    assert all(request.finished is Finish.STOP for request in asked)


@pytest.mark.parametrize("access", list(MappingAccess))
def test_the_probe_tells_the_two_faces_apart(model: HybridMiniature, access: MappingAccess) -> None:
    shipped = load_scenario("mamba-canary")
    engine = msgspec.structs.replace(shipped.engine, max_running_requests=8, max_mamba_cache_size=6)
    scenario = msgspec.structs.replace(shipped, engine=engine, memory=Memory(mapping_access=access))
    found = measure(
        "original",
        ShippedPools("original", "mamba"),
        scenario,
        load_problems(NAME, 24),
        LoadedModel(model, ""),
        Settings(),
    )
    if access is CHECKED:
        assert found.ended is Ended.CRASHED
        assert "IndexError" in found.detail
        assert "index 6" in found.detail
        assert "size 6" in found.detail
        assert found.answered < found.asked
    else:
        assert found.ended is Ended.MEASURED
        assert {one.index for one in found.memory.buffers} == {6, 7}
        assert {one.buffer for one in found.memory.buffers} == set(MAMBA_MAPPINGS)


def test_an_engine_configuration_divides_mamba_slots_as_upstream() -> None:
    config = EngineConfig(max_running_requests=7, dp_size=2, max_mamba_cache_size=5)
    assert (config.slots_per_rank, config.mamba_slots_per_rank) == (3, 2)
    assert replace(config, max_mamba_cache_size=None).mamba_slots_per_rank == 0
