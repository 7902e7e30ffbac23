"""What may be promised without target labels: the bound, the factor of error, the tail index."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta, binom, genpareto, norm

from lrqr.stats.certificate import certify, pareto_k, sensitivity


def _worst(chance: np.ndarray, weights: np.ndarray, factor: float) -> float:
    """The smallest mean of ``chance`` over weights within ``factor`` of the given ones: a linear program."""
    p = weights / weights.sum()
    found = linprog(
        chance, A_eq=np.ones((1, len(p))), b_eq=[1.0], bounds=np.column_stack([p / factor, p * factor])
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("seed", range(8))
def test_the_factor_is_where_the_worst_weights_reach_the_floor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chance, weights = rng.uniform(0.5, 1.0, 40), rng.exponential(size=40)
    floor = float(chance @ weights / weights.sum()) - rng.uniform(0.02, 0.1)
    factor = sensitivity(chance, weights, floor)
    assert _worst(chance, weights, factor) == pytest.approx(floor, abs=1e-7)
    assert _worst(chance, weights, 1.02 * factor) < floor < _worst(chance, weights, 0.98 * factor)


def test_a_floor_never_or_always_reached_has_the_factors_0_and_infinity() -> None:
    chance, weights = np.linspace(0.6, 0.9, 30), np.ones(30)
    assert sensitivity(chance, weights, 0.76) == 0.0
    assert sensitivity(chance, weights, 0.6 - 1e-6) == np.inf


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_the_tail_index_is_that_of_a_pareto_law(shape: float) -> None:
    """The mean of 20 estimates, each from the 949 largest of 100,000 with standard deviation (1 + k)/√949."""
    found = [pareto_k(genpareto.rvs(shape, size=100_000, random_state=seed)) for seed in range(20)]
    assert np.mean(found) == pytest.approx(shape, abs=3.5 * (1.0 + shape) / np.sqrt(949 * 20))


def test_the_tail_index_is_shrunk_towards_one_half_as_published() -> None:
    """Ten rows' worth of 0.5: the maximum-likelihood fit by scipy on the same tail agrees up to that."""
    weights = genpareto.rvs(0.3, size=20_000, random_state=1)
    count = int(np.ceil(3.0 * np.sqrt(20_000)))
    ordered = np.sort(weights)
    fitted = genpareto.fit(ordered[-count:] - ordered[-count - 1], floc=0.0)[0]
    expected = (count * fitted + 5.0) / (count + 10.0)
    assert pareto_k(weights) == pytest.approx(expected, abs=0.02)


def test_equal_weights_have_no_tail() -> None:
    assert pareto_k(np.ones(100)) == -np.inf


def test_without_shift_the_bound_is_that_of_clopper_and_pearson() -> None:
    rng = np.random.default_rng(0)
    covered = rng.uniform(size=400) < 0.85
    found = certify(covered, np.ones(400), np.zeros((400, 1)), np.zeros((200, 1)), coverage=0.9)
    share = covered.mean()
    assert found.estimate == pytest.approx(share, abs=1e-9)
    assert found.lower_bound == pytest.approx(beta.ppf(0.05, 400 * share, 400 - 400 * share + 1))
    assert found.effective_size == pytest.approx(400)


def test_the_bound_ignores_the_unit_of_the_ratios() -> None:
    rng = np.random.default_rng(1)
    x, target = rng.normal(size=(300, 1)), rng.normal(0.5, 1.0, size=(200, 1))
    covered, ratio = rng.uniform(size=300) < 0.9, np.exp(0.5 * x[:, 0])
    one = certify(covered, ratio, x, target, coverage=0.9)
    other = certify(covered, 1e6 * ratio, x, target, coverage=0.9)
    assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-9)


@pytest.mark.coverage
@pytest.mark.parametrize("adaptive", [False, True], ids=["constant", "adaptive"])
def test_the_bound_holds_in_at_least_95_percent_of_draws(adaptive: bool) -> None:
    """500 draws with the true ratio known: holds no less often than an exact binomial band allows."""
    draws, held = 500, 0
    shift, level = 0.8, 0.9
    grid = np.random.default_rng(123).normal(shift, 1.0, 200_000)
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        x, target = rng.normal(size=400), rng.normal(shift, 1.0, size=300)
        scores = np.abs((0.5 + 0.4 * np.abs(x)) * rng.normal(size=400))
        # a threshold that covers about 90 % of the target, from elsewhere than these rows
        base, slope = (0.76, 0.66) if adaptive else (1.76, 0.0)
        base += 0.02 * rng.normal()
        width, of_grid = base + slope * np.abs(x), base + slope * np.abs(grid)
        truth = float(np.mean(2.0 * norm.cdf(of_grid / (0.5 + 0.4 * np.abs(grid))) - 1.0))
        found = certify(
            scores <= width,
            np.exp(shift * x - shift**2 / 2),
            np.column_stack([x, np.abs(x)]),
            np.column_stack([target, np.abs(target)]),
            coverage=level,
        )
        held += truth >= found.lower_bound
    assert held >= binom.ppf(0.005, draws, 0.95)
