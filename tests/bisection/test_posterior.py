from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.stats import beta, binom

from poolbisect.bisection.costs import CostModel, entropy, information
from poolbisect.bisection.diagnosis import runs_p_value
from poolbisect.bisection.forecast import expect
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Observation
from poolbisect.bisection.plan import Mode, Plan
from poolbisect.bisection.posterior import ChangePoint, credible_range, position_weights
from poolbisect.bisection.shapes import Cumulative, Prior, Tally, one_step, slope
from poolbisect.bisection.testability import testable_probability as chance_to_run
from poolbisect.errors import UsageError

JEFFREYS = Prior()


def tally(positions: list[int], right: list[float], asked: list[float]) -> Tally:
    return Tally(np.array(positions), np.array([right]), np.array([asked]), np.ones(1))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=5))
def test_one_step_is_the_integral_over_both_rates(cells: list[tuple[int, int]]) -> None:
    right = [float(r) for r, _ in cells]
    asked = [float(r + w) for r, w in cells]
    table = tally(list(range(len(cells))), right, asked)
    fast = one_step(JEFFREYS, JEFFREYS, Cumulative.of(table))
    theta = (np.arange(4000) + 0.5) / 4000 * np.pi / 2
    p = np.sin(theta) ** 2
    for gap, value in enumerate(fast, start=1):
        product = 0.0
        for part in (slice(0, gap), slice(gap, None)):
            r, n = sum(right[part]), sum(asked[part])
            product += np.log(np.mean(p**r * (1 - p) ** (n - r)))
        assert value == pytest.approx(product, abs=1e-4)


def test_the_slope_is_the_integral_over_both_ends() -> None:
    table = tally([0, 10, 40], [70, 60, 50], [100, 100, 100])

    def density(b: float, a: float) -> float:
        ends = np.log([a / (1 - a), b / (1 - b)])
        x = np.array([0, 0.25, 1.0])
        p = 1 / (1 + np.exp(-(ends[0] * (1 - x) + ends[1] * x)))
        fit = binom.logpmf([70, 60, 50], 100, p).sum() + beta.logpdf([a, b], 0.5, 0.5).sum()
        return float(np.exp(fit + 20))

    exact = np.log(dblquad(density, 0.45, 0.9, 0.25, 0.8, epsabs=1e-9)[0]) - 20
    constant = binom.logpmf([70, 60, 50], 100, 0.5).sum() - 300 * np.log(0.5)
    assert slope(JEFFREYS, JEFFREYS, table).log_likelihood + constant == pytest.approx(
        exact, abs=0.05
    )


@given(st.data())
def test_the_posterior_is_a_distribution(data: st.DataObject) -> None:
    commits = data.draw(st.integers(3, 60))
    inside = data.draw(st.sets(st.integers(1, commits - 2), max_size=6))
    where = sorted({0, commits - 1, *inside})
    asked = [float(data.draw(st.integers(1, 400))) for _ in where]
    right = [float(data.draw(st.integers(0, int(n)))) for n in asked]
    model = ChangePoint(
        tally(where, right, asked), position_weights(commits, None), old=JEFFREYS, new=JEFFREYS
    )
    mass = model.distribution()
    assert mass.shape == (commits,)
    assert mass[0] == 0
    assert (mass >= 0).all()
    assert mass.sum() + model.none + model.slope == pytest.approx(1)
    assert mass.sum() == pytest.approx(model.gaps.sum())


def test_more_evidence_on_both_sides_sharpens_the_posterior() -> None:
    weights = position_weights(20, None)
    masses = []
    for n in (50.0, 200.0, 800.0):
        table = tally([0, 9, 10, 19], [0.8 * n, 0.8 * n, 0.5 * n, 0.5 * n], [n] * 4)
        model = ChangePoint(table, weights, old=JEFFREYS, new=JEFFREYS)
        masses.append(float(model.distribution()[10]))
    assert masses == sorted(masses)
    assert masses[-1] > 0.999


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=30), st.floats(0.05, 1))
def test_the_credible_range_holds_its_mass_and_none_shorter_does(
    values: list[float], mass: float
) -> None:
    spread = np.array(values) / sum(values)
    low, high = credible_range(spread, mass)
    assert spread[low : high + 1].sum() >= mass - 1e-9
    width = high - low
    if width:
        sums = np.convolve(spread, np.ones(width), "valid")
        assert sums.max() < mass + 1e-9


def test_information_is_bounded_by_the_entropy_and_reaches_it() -> None:
    for p in (0.02, 0.3, 0.5):
        chances = np.array([p, 1 - p])
        near = information(chances, np.array([[0.0, 0.0]]), np.ones((1, 2)))[0]
        weak = information(chances, np.array([[0.0, 0.1]]), np.ones((1, 2)))[0]
        far = information(chances, np.array([[0.0, 40.0]]), np.ones((1, 2)))[0]
        assert near == pytest.approx(0, abs=1e-9)
        assert weak == pytest.approx(p * (1 - p) * 0.01 / 2, rel=0.02)
        assert far == pytest.approx(float(entropy(p)), rel=1e-6)


def test_over_dispersion_is_found_in_runs_that_have_it_and_only_there() -> None:
    rng = np.random.default_rng(1)
    rho = 0.004
    rates = rng.beta(0.776 * (1 / rho - 1), 0.224 * (1 / rho - 1), 400)
    spread = [(int(rng.binomial(1319, p)), 1319) for p in rates]
    even = [(int(rng.binomial(1319, 0.776)), 1319) for _ in range(400)]
    assert Noise.from_runs(spread).run == pytest.approx(rho, rel=0.25)
    assert Noise.from_runs(even).run < 2e-4
    with pytest.raises(UsageError, match="two or more runs"):
        Noise.from_runs([(3, 4)])


def test_runs_of_one_commit_are_compared_on_the_same_questions() -> None:
    same = Observation.answers("1" * 60 + "0" * 40)
    flipped = Observation.answers("0" * 30 + "1" * 30 + "0" * 40)
    assert runs_p_value([same, same], Noise()) == 1.0
    assert runs_p_value([same, flipped], Noise()) < 1e-6
    apart = [Observation.counts(155, 200), Observation.counts(90, 200)]
    assert runs_p_value(apart, Noise()) < 1e-6
    assert runs_p_value(apart, Noise(run=0.1)) > 0.01


def test_commits_near_a_broken_one_are_less_likely_to_run() -> None:
    assert (chance_to_run(10, [0, 9], []) == 1).all()
    chance = chance_to_run(41, [0, 40], [20])
    assert chance[20] == pytest.approx(0)
    assert chance[0] == pytest.approx(1)
    assert (np.diff(chance[:21]) <= 1e-12).all()
    assert (np.diff(chance[20:]) >= -1e-12).all()
    assert chance_to_run(41, [0, 40], [18, 22])[20] < 0.05


def test_the_forecast_knows_every_kind_of_search() -> None:
    assert expect(6211, Plan()).probes == 15
    assert expect(2, Plan()).probes == 2
    rates = {"good_rate": 0.776, "bad_rate": 0.72}
    forecast = expect(64, Plan(mode=Mode.COUNTS), **rates)
    assert forecast.switches == 7
    assert 5500 < forecast.questions < 7500
    paired = expect(64, Plan(mode=Mode.PAIRED), discordant=0.1, **rates)
    assert paired.questions < 2000
    dearer = Plan(mode=Mode.COUNTS, costs=CostModel(switch=4000))
    assert expect(64, dearer, **rates).cost == forecast.cost + 8 * 2000
    with pytest.raises(UsageError, match="good and a lower bad rate"):
        expect(64, Plan(mode=Mode.COUNTS))


def test_a_prior_moves_the_mass() -> None:
    weights = position_weights(11, [0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 5])
    assert weights[0] == 0
    assert weights.sum() == pytest.approx(1)
    assert weights[3] > 0.49
    assert (weights[1:] > 0).all()
