"""The engine's own claims: what it remembers, what it frees, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from poolbisect.engine.config import Behind, EngineConfig, PaddedRows
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Finish, Request
from poolbisect.errors import UsageError
from poolbisect.memory.arena import IllegalAccessError
from poolbisect.memory.guard import MemoryMode, OutOfRangeError
from poolbisect.models.loading import load_mimo
from poolbisect.pools.leak_check import leaked_slots
from poolbisect.pools.shipped import ShippedPools
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems

LIMIT = 96


def requests(count: int) -> list[Request]:
    return [
        Request(str(p.id), arithmetic.prompt_tokens(p), LIMIT, arithmetic.EOS, noise_seed=p.id)
        for p in load_problems(NAME, count)
    ]


def serve(
    state: str,
    count: int,
    memory: MemoryMode = MemoryMode.GUARD,
    **changes: object,
) -> tuple[list[Request], Engine]:
    settings = {"max_running_requests": 16, "dp_size": 2, **changes}
    engine = Engine(EngineConfig(**settings), load_mimo(), ShippedPools(state), memory)  # type: ignore[arg-type]
    asked = requests(count)
    engine.run(asked)
    return asked, engine


def outputs(asked: list[Request]) -> list[list[int]]:
    return [request.output for request in asked]


def test_everything_is_given_back_when_the_work_is_done() -> None:
    asked, engine = serve("corrected", 40)
    assert all(request.finished is Finish.STOP for request in asked)
    for rank in engine.ranks:
        assert leaked_slots(rank.pool) == 0
        assert not rank.slots.owners
        assert not rank.future.space.owners
        assert sorted(rank.allocator.free) == list(range(1, rank.allocator.pages + 1))


def test_requests_are_dealt_in_turn_and_slots_come_round_first_in_first_out() -> None:
    asked, engine = serve("corrected", 40)
    assert [request.slot_held for request in asked[:16]] == [n for n in range(1, 9) for _ in "ab"]
    for number, rank in enumerate(engine.ranks):
        mine = asked[number::2]
        assert rank.allocations == len(mine)
        assert {request.slot_held for request in mine} == set(range(1, 9))


@pytest.mark.parametrize("state", ["original", "corrected", "unpadded"])
def test_silent_and_guard_give_identical_outputs(state: str) -> None:
    changes = {"behind_hidden_states": Behind.FUTURE_VERIFIED_IDS}
    guarded, engine = serve(state, 120, **changes)
    silent, _ = serve(state, 120, MemoryMode.SILENT, **changes)
    assert outputs(guarded) == outputs(silent)
    assert [r.accepted for r in guarded] == [r.accepted for r in silent]
    breaches = sum(rank.guard.reads + rank.guard.writes for rank in engine.ranks)
    assert (breaches > 0) == (state == "original")


def test_every_breach_is_at_the_last_slot_of_the_hidden_states_pool() -> None:
    asked, engine = serve("original", 60)
    for rank in engine.ranks:
        assert set(rank.guard.tallies) == {("req_to_hidden_states_pool", 8)}
        on_last_slot = {r.id for r in asked[rank.number :: 2] if r.slot_held == 8}
        assert rank.guard.offenders == on_last_slot


def test_strict_mode_stops_at_the_first_breach_and_names_it() -> None:
    with pytest.raises(OutOfRangeError) as stopped:
        serve("original", 60, MemoryMode.STRICT)
    access = stopped.value.access
    assert (access.buffer, access.index, access.rows) == ("req_to_hidden_states_pool", 8, 8)
    assert access.space == "request slot"
    assert "req_to_hidden_states_pool[8] of 8 rows" in str(stopped.value)
    serve("corrected", 60, MemoryMode.STRICT)


def test_nothing_behind_the_short_buffer_means_no_output_changes() -> None:
    nothing = {"behind_hidden_states": Behind.NOTHING}
    good, _ = serve("corrected", 80, **nothing)
    bad, engine = serve("original", 80, **nothing)
    assert outputs(good) == outputs(bad)
    assert [r.accepted for r in good] == [r.accepted for r in bad]
    hits = {hit for rank in engine.ranks for t in rank.guard.tallies.values() for hit in t.hit}
    assert hits == {"free memory"}


def test_an_overwritten_sequence_length_leads_out_of_the_device_memory() -> None:
    with pytest.raises(IllegalAccessError, match="req_to_token"):
        serve("original", 120, behind_hidden_states=Behind.FUTURE_SEQ_LENS)


def test_sampling_is_seeded_and_does_not_depend_on_speculation_or_batch_size() -> None:
    plain = {"speculative_num_steps": 0, "speculative_num_draft_tokens": 1}
    sampled, _ = serve("corrected", 24, temperature=0.7)
    again, _ = serve("corrected", 24, temperature=0.7)
    alone, _ = serve("corrected", 24, temperature=0.7, max_running_requests=2, **plain)
    greedy, _ = serve("corrected", 24)
    assert outputs(sampled) == outputs(again)
    same = sum(a == b for a, b in zip(outputs(sampled), outputs(alone), strict=True))
    assert same >= 23  # noise is the same; a near-tie may fall the other way
    assert outputs(sampled) != outputs(greedy)


def test_the_hidden_states_pool_holds_the_target_states_of_the_last_two_tokens() -> None:
    whole, _ = serve("corrected", 1)
    model = load_mimo()
    settings = EngineConfig(max_running_requests=1, dp_size=1, disable_overlap_schedule=True)
    engine = Engine(settings, model, ShippedPools("corrected"))
    short = replace(requests(1)[0], max_new_tokens=8)
    engine.run([short])
    remembered = engine.ranks[0].hidden_states.tensor[short.slot_held or 0]
    with torch.inference_mode():
        states = model.hidden_states(torch.tensor([whole[0].prompt + whole[0].output]))[0]
    # The eighth token's state is not known yet; the last step may have accepted a few more.
    first = len(short.prompt) + 8 - 3
    pairs = [states[at : at + 2] for at in range(first, first + 4)]
    distances = [float((pair - remembered).abs().max()) for pair in pairs]
    assert min(distances) < 1e-3 < sorted(distances)[1]


def test_drafts_are_accepted_more_often_when_stale_keys_are_reverted() -> None:
    """Without reverting, later layers would keep keys of drafts that were rejected."""
    asked, _ = serve("corrected", 60)
    accepted = sum(request.accepted for request in asked)
    steps = sum(request.verify_steps for request in asked)
    assert accepted / steps > 2


@pytest.mark.parametrize("padded", list(PaddedRows))
def test_padded_rows_change_no_output(padded: PaddedRows) -> None:
    odd, _ = serve("corrected", 30, padded_rows=padded, max_running_requests=10)
    plain, _ = serve("corrected", 30, cuda_graph_max_bs=1, max_running_requests=10)
    assert outputs(odd) == outputs(plain)


def test_a_pool_of_one_slot_serves_and_the_only_slot_is_the_last() -> None:
    good, engine = serve("corrected", 3, max_running_requests=1, dp_size=1)
    assert engine.ranks[0].slots.used == {1}
    bad, engine = serve("original", 3, max_running_requests=1, dp_size=1)
    assert engine.ranks[0].guard.offenders == {"0", "1", "2"}
    unpadded, engine = serve("unpadded", 3, max_running_requests=1, dp_size=1)
    assert engine.ranks[0].guard.reads == 0
    assert outputs(good) == outputs(unpadded)
    assert len(outputs(bad)) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_running_requests": 1, "dp_size": 2}, "leaves no request slot"),
        ({"dp_size": 0}, "--dp-size must be at least 1"),
        ({"speculative_num_steps": 1, "speculative_num_draft_tokens": 2}, "num-steps 1"),
        ({"speculative_num_draft_tokens": 5}, "num-draft-tokens 5"),
        ({"speculative_eagle_topk": 2}, "topk 2"),
        ({"temperature": -1.0}, "temperature"),
        ({"context_length": 100}, "--context-length is 100"),
    ],
)
def test_impossible_configurations_are_refused_in_one_sentence(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        serve("corrected", 2, **changes)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("without_overlap", [True, False])
def test_a_long_request_survives_any_number_of_short_ones(without_overlap: bool) -> None:
    """Prefills in a row must not come round the future ring to an outcome still to be resolved."""

    def long_answer(short: int) -> list[int]:
        settings = EngineConfig(
            max_running_requests=5, dp_size=1, disable_overlap_schedule=without_overlap
        )
        engine = Engine(settings, load_mimo(), ShippedPools("corrected"))
        (long,) = requests(1)
        others = [
            Request(f"short {n}", [arithmetic.BOS, 5 + n % 10, 6 + n % 7, 7], 1, -1)
            for n in range(short)
        ]
        engine.run([long, *others])
        return long.output

    alone = long_answer(0)
    assert all(long_answer(short) == alone for short in (48, 49, 50))
