"""Isotonic DRO: worked projections and suprema, convex programs, brute force, limits."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from lrqr.methods.divergences import plug_in_radius, worst_case_mean
from lrqr.methods.dro import DistributionallyRobust
from lrqr.methods.dro_isotonic import IsotonicRobust, isotonic_projection, isotonic_quantile
from lrqr.stats.quantiles import order_statistic, tolerant_ceil
from lrqr.stats.ratio import LikelihoodRatio

RISKS = {
    "growing": ([0, 1, 0, 0, 1, 1], [0, 1 / 3, 1 / 3, 1 / 3, 1, 1]),
    "falling": ([1, 1, 0, 0, 0, 0], [1 / 3] * 6),
    "losses": ([0.2, 0.1, 0.4, 0.3, 0.9, 0.6], [0.15, 0.15, 0.35, 0.35, 0.75, 0.75]),
}
# I5.1: suprema at radii .05, .1, .5
SUPREMA = {
    ("growing", "kl"): (0.61931146, 0.66893739, 0.86889592),
    ("growing", "chi2"): (0.61785113, 0.66666667, 0.86666667),
    ("falling", "kl"): (1 / 3, 1 / 3, 1 / 3),
    ("falling", "chi2"): (1 / 3, 1 / 3, 1 / 3),
    ("losses", "kl"): (0.49657930, 0.52981856, 0.66343006),
    ("losses", "chi2"): (0.49554773, 0.52822134, 0.66547005),
}


@pytest.mark.parametrize(("name", "divergence"), SUPREMA)
def test_worked_suprema(name: str, divergence: str) -> None:
    risk, expected = np.array(RISKS[name][0], dtype=float), RISKS[name][1]
    projected = isotonic_projection(risk, np.arange(6.0))
    assert projected == pytest.approx(np.array(expected))
    got = [worst_case_mean(projected, radius, divergence) for radius in (0.05, 0.1, 0.5)]
    assert got == pytest.approx(SUPREMA[name, divergence], abs=6e-9)


def test_tied_keys_are_pooled() -> None:
    """I5.4: the plain projection would give 0, 2/3, 2/3, 2/3, 1, 1."""
    got = isotonic_projection(np.array([0, 1, 1, 0, 1, 1.0]), np.array([1, 1, 2, 2, 3, 3.0]))
    assert got == pytest.approx([0.5, 0.5, 0.5, 0.5, 1, 1])


def _program(risk: np.ndarray, key: np.ndarray, radius: float, divergence: str) -> float:
    """The supremum over isotonic reweightings as an explicit convex program, ties held equal."""
    if radius == 0.0:  # one point is feasible, which interior points do not like
        return float(risk.mean())
    n = len(risk)
    w = cp.Variable(n, nonneg=True)
    spread = -cp.sum(cp.entr(w)) / n if divergence == "kl" else cp.sum_squares(w - 1) / (2 * n)
    order = np.argsort(key, kind="stable")
    rules = [cp.sum(w) == n, spread <= radius]
    for i, j in itertools.pairwise(order):
        rules.append(w[i] == w[j] if key[i] == key[j] else w[i] <= w[j])
    return float(cp.Problem(cp.Maximize(risk @ w / n), rules).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("divergence", ["kl", "chi2"])
@pytest.mark.parametrize("radius", [0.05, 0.3, 1.0])
def test_supremum_equals_a_convex_program(divergence: str, radius: float) -> None:
    rng = np.random.default_rng(0)
    for key in (rng.permutation(8).astype(float), np.array([0, 0, 1, 1, 2, 3, 3, 4.0])):
        risk = rng.uniform(size=8)
        got = worst_case_mean(isotonic_projection(risk, key), radius, divergence)
        assert got == pytest.approx(_program(risk, key, radius, divergence), abs=3e-6)


@pytest.mark.parametrize("divergence", ["kl", "chi2"])
def test_threshold_of_six_points_by_brute_force(divergence: str) -> None:
    scores, key = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 2.0]), np.array([2.0, 0.0, 1.0, 3.0, 3.0, 0.5])
    for radius in (0.0, 0.05, 0.4):
        for alpha in (0.2, 0.35, 0.5):
            worst = {q: _program((scores > q).astype(float), key, radius, divergence) for q in set(scores)}
            best = min(q for q in worst if worst[q] <= alpha + 1e-6)
            assert isotonic_quantile(scores, key, alpha, radius, divergence) == best


def test_zero_radius_is_the_plug_in_quantile() -> None:
    rng = np.random.default_rng(0)
    y, key = rng.normal(size=57), rng.normal(size=57)
    for alpha in (0.05, 0.1, 0.3):
        assert isotonic_quantile(y, key, alpha, 0.0, "kl") == order_statistic(
            y, tolerant_ceil(57 * (1 - alpha))
        )


def test_order_of_the_key_decides() -> None:
    """Harmful order equals plain DRO, harmless order corrects nothing; always finite."""
    y = np.arange(1.0, 101.0)
    plain = DistributionallyRobust(radius=0.05, rank="plug-in").fit(np.zeros((100, 1)), y).threshold_
    assert isotonic_quantile(y, y, 0.1, 0.05, "kl") == plain
    assert isotonic_quantile(y, -y, 0.1, 0.05, "kl") == 90.0
    assert isotonic_quantile(y, y, 0.1, 1e6, "kl") == 100.0


def test_thresholds_grow_with_radius_and_level() -> None:
    rng = np.random.default_rng(0)
    y, key = rng.normal(size=80), rng.normal(size=80)
    by_radius = [isotonic_quantile(y, key, 0.1, radius, "kl") for radius in (0.0, 0.05, 0.2, 1.0)]
    by_level = [isotonic_quantile(y, key, alpha, 0.1, "chi2") for alpha in (0.5, 0.2, 0.1, 0.05)]
    assert by_radius == sorted(by_radius)
    assert by_level == sorted(by_level)


def test_only_the_order_of_the_ratio_and_its_radius_matter() -> None:
    rng = np.random.default_rng(0)
    X, target, y = rng.normal(size=(200, 2)), 0.5 + rng.normal(size=(150, 2)), rng.exponential(size=200)
    ratio = LikelihoodRatio().fit(X, target)
    model = IsotonicRobust().fit(X, y, X_target=target, ratio=ratio)
    assert model.radius_ == plug_in_radius(ratio.source_, ratio.target_, "kl")
    assert model.threshold_ == isotonic_quantile(y, np.log(ratio.source_), 1 - 0.9, model.radius_, "kl")
    fixed = IsotonicRobust(radius=0.02, divergence="chi2").fit(X, y, X_target=target, ratio=ratio)
    assert fixed.radius_ == 0.02
    assert np.isfinite(fixed.predict(target)).all()
