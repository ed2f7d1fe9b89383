"""Sampling: greedy is argmax, and seeded draws follow the softmax however tokens are batched."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from poolbisect.engine.sampler import choose

DRAWS = 20_000
LOGITS = torch.tensor([2.0, 0.5, -1.0, 1.0, 0.0, -3.0])


def random_logits(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def counts(tokens: torch.Tensor, vocabulary: int) -> list[int]:
    return torch.bincount(tokens.flatten(), minlength=vocabulary).tolist()


@pytest.mark.parametrize("shape", [(50, 19), (7, 4, 19)])
def test_temperature_zero_is_argmax(shape: tuple[int, ...]) -> None:
    logits = random_logits(*shape)
    tokens = choose(logits, 0.0, torch.tensor(3), torch.tensor(5))
    assert torch.equal(tokens, logits.argmax(-1))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("varying", ["seed", "position"])
def test_draws_follow_the_softmax(temperature: float, varying: str) -> None:
    """Over many requests at one position, and over many positions of one request."""
    many, one = torch.arange(DRAWS), torch.full((DRAWS,), 12)
    seeds, positions = (many, one) if varying == "seed" else (one, many)
    tokens = choose(LOGITS.expand(DRAWS, -1), temperature, seeds, positions)
    expected = (LOGITS.double() / temperature).softmax(-1) * DRAWS
    assert chisquare(counts(tokens, 6), expected.tolist()).pvalue > 0.001


def test_the_chi_square_would_see_a_wrong_temperature() -> None:
    tokens = choose(LOGITS.expand(DRAWS, -1), 1.0, torch.arange(DRAWS), torch.tensor(12))
    expected = (LOGITS.double() / 1.1).softmax(-1) * DRAWS
    assert chisquare(counts(tokens, 6), expected.tolist()).pvalue < 1e-6


@pytest.mark.parametrize(
    "step", [(0, 1), (1, 0), (1, 1), (1, -1)], ids=["position", "seed", "both", "against"]
)
def test_neighbouring_draws_are_independent(step: tuple[int, int]) -> None:
    flat = torch.zeros(DRAWS, 6)
    seeds, positions = torch.arange(DRAWS) * 3, torch.arange(DRAWS) % 150 + 1
    first = choose(flat, 1.0, seeds, positions)
    second = choose(flat, 1.0, seeds + step[0], positions + step[1])
    table = torch.bincount(first * 6 + second, minlength=36).view(6, 6)
    assert chi2_contingency(table.numpy()).pvalue > 0.001


def test_different_positions_and_seeds_give_different_noise() -> None:
    flat = torch.zeros(2000, 1000)
    there = choose(flat, 1.0, torch.tensor(4), torch.arange(2000))
    shifted = choose(flat, 1.0, torch.tensor(4), torch.arange(2000) + 1)
    other = choose(flat, 1.0, torch.tensor(5), torch.arange(2000))
    assert (there == shifted).float().mean() < 0.01
    assert (there == other).float().mean() < 0.01


@given(
    seeds=st.lists(st.integers(0, 2**40), min_size=1, max_size=12),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    data=st.data(),
)
def test_batching_changes_nothing(
    seeds: list[int], temperature: float, data: st.DataObject
) -> None:
    """The same requests in another order, one by one, or several tokens at once."""
    rows, width = len(seeds), 4
    logits = random_logits(rows, width, 19, seed=rows)
    seed, position = torch.tensor(seeds), torch.arange(rows)[:, None] + torch.arange(width)
    together = choose(logits, temperature, seed[:, None], position)
    order = torch.tensor(data.draw(st.permutations(range(rows))))
    shuffled = choose(logits[order], temperature, seed[order, None], position[order])
    assert torch.equal(shuffled, together[order])
    for row in range(rows):
        for column in range(width):
            alone = choose(
                logits[row : row + 1, column],
                temperature,
                seed[row : row + 1],
                position[row : row + 1, column],
            )
            assert alone.item() == together[row, column].item()


def test_a_token_far_below_the_others_is_never_drawn() -> None:
    logits = torch.tensor([0.0, -200.0]).expand(DRAWS, -1)
    assert not choose(logits, 1.0, torch.arange(DRAWS), torch.tensor(0)).any()
