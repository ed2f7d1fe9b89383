"""The n-gram variant on the engine: its own answers, and a token table one row short."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from torch import nn

from poolbisect.engine.config import Behind
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Request
from poolbisect.memory.guard import MemoryMode, OutOfRangeError
from poolbisect.models.llama import MimoMiniature
from poolbisect.models.loading import load_mimo, load_model
from poolbisect.models.training import greedy_answers
from poolbisect.pools.interface import TOKEN_TABLE
from poolbisect.pools.shipped import ShippedPools
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems

Answered = Callable[..., tuple[list[Request], Engine]]
COUNT = 24


@pytest.fixture(scope="module")
def model() -> MimoMiniature:
    loaded = load_model("ngram").model
    assert isinstance(loaded, MimoMiniature)
    assert loaded.config.ngram_embedding
    return loaded


@pytest.fixture(scope="module")
def own(model: MimoMiniature) -> list[str]:
    """What the model itself writes to the first problems, computed without any cache or table."""
    return greedy_answers(
        lambda tokens: model.logits(model.hidden_states(tokens)), load_problems(NAME, COUNT), 96
    )


def texts(asked: list[Request]) -> list[str]:
    return [arithmetic.decode(request.output) for request in asked]


@pytest.mark.parametrize("dp_size", [1, 2])
@pytest.mark.parametrize("at_once", [1, 12])
@pytest.mark.parametrize("steps", [0, 3])
def test_the_engine_writes_what_the_model_itself_writes(
    model: MimoMiniature,
    own: list[str],
    answered: Answered,
    at_once: int,
    dp_size: int,
    steps: int,
) -> None:
    asked, engine = answered(
        model,
        ShippedPools("corrected"),
        COUNT,
        dp_size=dp_size,
        max_running_requests=at_once * dp_size,
        speculative_num_steps=steps,
        speculative_num_draft_tokens=steps + 1,
    )
    assert texts(asked) == own
    assert all(rank.guard.reads + rank.guard.writes == 0 for rank in engine.ranks)


def test_padded_rows_change_no_output(
    model: MimoMiniature, own: list[str], answered: Answered
) -> None:
    """Five requests run in a graph of eight rows; slots of padded rows belong to others."""
    asked, _ = answered(
        model, ShippedPools("unpadded"), COUNT, dp_size=1, max_running_requests=9, concurrency=5
    )
    assert texts(asked) == own


def test_pairs_matter(model: MimoMiniature, own: list[str]) -> None:
    """Were the pairs' embeddings of no use, a wrong table could not be seen."""
    without = copy.deepcopy(model)
    without.model.get_parameter("embed_ngrams.weight").data.zero_()
    blind = greedy_answers(
        lambda tokens: without.logits(without.hidden_states(tokens)), load_problems(NAME, 8), 96
    )
    assert blind != own[:8]


def test_only_the_last_slot_of_the_token_table_is_out_of_range(
    model: MimoMiniature, answered: Answered
) -> None:
    for state in ("original", "unpadded", "corrected"):
        asked, engine = answered(
            model,
            ShippedPools(state),
            60,
            dp_size=2,
            max_running_requests=16,
            behind_hidden_states=Behind.NOTHING,
        )
        for rank in engine.ranks:
            expected = {(TOKEN_TABLE, 8)} if state == "original" else set()
            assert set(rank.guard.tallies) == expected
            if expected:
                last = {r.id for r in asked[rank.number :: 2] if r.slot_held == 8}
                assert rank.guard.offenders == last


def test_what_nobody_owns_keeps_tokens_as_well_as_a_row_does(
    model: MimoMiniature, answered: Answered
) -> None:
    """With nothing behind the table, the last slot's tokens are read back unharmed."""
    nothing = {"dp_size": 2, "max_running_requests": 16, "behind_hidden_states": Behind.NOTHING}
    good, _ = answered(model, ShippedPools("corrected"), 60, **nothing)
    bad, _ = answered(model, ShippedPools("original"), 60, **nothing)
    assert texts(good) == texts(bad)


def test_silent_and_guard_give_identical_outputs_and_strict_stops(
    model: MimoMiniature, answered: Answered
) -> None:
    settings = {
        "dp_size": 2,
        "max_running_requests": 16,
        "behind_hidden_states": Behind.FUTURE_VERIFIED_IDS,
    }
    pools = ShippedPools("original")
    silent, _ = answered(model, pools, 120, memory=MemoryMode.SILENT, **settings)
    guarded, _ = answered(model, pools, 120, **settings)
    good, _ = answered(model, ShippedPools("corrected"), 120, **settings)
    assert texts(silent) == texts(guarded) != texts(good)
    with pytest.raises(OutOfRangeError, match=rf"{TOKEN_TABLE}\[8\] of 8 rows"):
        answered(model, pools, 120, memory=MemoryMode.STRICT, **settings)


def test_a_model_without_n_grams_has_no_table(answered: Answered) -> None:
    plain: nn.Module = load_mimo()
    _, engine = answered(plain, ShippedPools("original"), 12, dp_size=1, max_running_requests=4)
    (rank,) = engine.ranks
    assert TOKEN_TABLE not in rank.buffers
    assert rank.guard.reads + rank.guard.writes == 0
