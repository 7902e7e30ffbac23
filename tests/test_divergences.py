"""Worst-case levels and means: worked numbers, closed forms, cvxpy programs, round trips."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import worst_case_probability

from lrqr.errors import UsageError
from lrqr.methods.divergences import (
    DIVERGENCES,
    bernoulli_divergence,
    check_divergence,
    check_radius,
    plug_in_radius,
    robust_level,
    robust_tail,
    worst_case_mean,
)

RADII = (0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
# F4.1: g⁻¹ at these radii
LEVELS = {
    ("kl", 0.1): "0.9273277788 0.9370893702 0.9493708461 0.9687216037 0.9834356421 0.9997383426 0.9999982411",
    (
        "kl",
        0.05,
    ): "0.9688579829 0.9750188552 0.9822136165 0.9918989162 0.9973125842 0.9999991434 1.0000000000",
    ("kl", 0.2): "0.8379316631 0.8523833026 0.8715087975 0.9048117297 0.9349828096 0.9930863779 0.9994468043",
    (
        "chi2",
        0.1,
    ): "0.9261522898 0.9348911661 0.9454284165 0.9611255027 0.9727766711 0.9915475947 0.9954260164",
    (
        "chi2",
        0.05,
    ): "0.9676838414 0.9729448073 0.9788060723 0.9864972108 0.9913686670 0.9977178029 0.9988074923",
    (
        "chi2",
        0.2,
    ): "0.8369418700 0.8504368887 0.8677520313 0.8963770046 0.9207825128 0.9701562119 0.9829708431",
    (
        "chi2full",
        0.1,
    ): "0.9192636909 0.9261522898 0.9348911661 0.9491324813 0.9611255027 0.9852479508 0.9915475947",
    (
        "chi2full",
        0.05,
    ): "0.9632960149 0.9676838414 0.9729448073 0.9807354817 0.9864972108 0.9957890021 0.9977178029",
    (
        "chi2full",
        0.2,
    ): "0.8267607380 0.8369418700 0.8504368887 0.8741627411 0.8963770046 0.9516611478 0.9701562119",
    ("tv", 0.1): "0.9025 0.905 0.91 0.925 0.95 1 1",
    ("tv", 0.05): "0.9525 0.955 0.96 0.975 1 1 1",
    ("tv", 0.2): "0.8025 0.805 0.81 0.825 0.85 1 1",
}
SMALL_RISKS = ([0, 1, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0], [0.2, 0.1, 0.4, 0.3, 0.9, 0.6])
divergences = st.sampled_from(DIVERGENCES)


@pytest.mark.parametrize(("divergence", "alpha"), LEVELS)
def test_robust_levels(divergence: str, alpha: float) -> None:
    got = [robust_level(1 - alpha, radius, divergence) for radius in RADII]
    assert np.allclose(got, np.array(LEVELS[divergence, alpha].split(), dtype=float), atol=6e-11, rtol=0)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_worked_level_round_trip(divergence: str) -> None:
    """F4.2."""
    assert worst_case_probability(robust_level(0.9, 0.05, divergence), 0.05, divergence) == pytest.approx(0.9)


def test_worst_case_probabilities() -> None:
    """F4.3."""
    expected = {"kl": 0.9008813341, "chi2": 0.9064110106, "chi2full": 0.91917793, "tv": 0.94}
    for divergence, value in expected.items():
        assert worst_case_probability(0.95, 0.02, divergence) == pytest.approx(value, abs=6e-11)
    assert worst_case_probability(0.2, 0.5, "kl") == 0.0


def test_extreme_tails_keep_their_digits() -> None:
    """F4.4, and beyond the last level below 1 that a float can hold."""
    assert robust_tail(0.1, 1.0, "kl") == pytest.approx(1.758914e-06, rel=1e-6)
    assert robust_tail(0.1, 2.0, "kl") == pytest.approx(7.985335e-11, rel=1e-6)
    # with β = 1 up to rounding, α·log(α/tail) + τ·log τ = ρ
    assert robust_tail(0.1, 5.0, "kl") == pytest.approx(
        0.1 * math.exp(-(5.0 - 0.9 * math.log(0.9)) / 0.1), rel=1e-9
    )


@pytest.mark.parametrize(
    ("n", "kl", "chi2"),
    [
        (100, 0.145384, 0.41405),
        (500, 0.298376, 2.41081),
        (1000, 0.366692, 4.910405),
        (10000, 0.596051, 49.91004),
    ],
)
def test_critical_radii(n: int, kl: float, chi2: float) -> None:
    """F4.5: the largest radius with a finite threshold, α = .1."""
    assert bernoulli_divergence(0.9, n / (n + 1), "kl") == pytest.approx(kl, abs=6e-7)
    assert bernoulli_divergence(0.9, n / (n + 1), "chi2") == pytest.approx(chi2, rel=1e-6)


@given(divergences, st.floats(0.01, 0.99), st.floats(0.0, 3.0))
def test_inverse_and_constraint(divergence: str, level: float, radius: float) -> None:
    beta = robust_level(level, radius, divergence)
    assert level - 1e-12 <= beta <= 1.0
    if beta < 1 - 1e-9:
        assert worst_case_probability(beta, radius, divergence) == pytest.approx(level, abs=1e-6)
        assert bernoulli_divergence(level, beta, divergence) == pytest.approx(radius, abs=1e-7)


@given(divergences, st.floats(0.01, 0.99), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_levels_grow_with_the_radius(divergence: str, level: float, one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert robust_level(level, low, divergence) <= robust_level(level, high, divergence) + 1e-12


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_zero_radius_changes_nothing(divergence: str) -> None:
    assert robust_level(0.9, 0.0, divergence) == pytest.approx(0.9, abs=1e-15)
    assert robust_tail(0.1, 0.0, divergence) == 0.1
    assert worst_case_probability(0.9, 0.0, divergence) == 0.9
    assert worst_case_mean(np.array([0.0, 1.0, 1.0]), 0.0, divergence) == pytest.approx(2 / 3)
    assert robust_level(0.9, 1e-18, divergence) == pytest.approx(0.9, abs=1e-8)


def _program(risk: np.ndarray, radius: float, divergence: str) -> float:
    """The supremum as an explicit convex program."""
    n = len(risk)
    w = cp.Variable(n, nonneg=True)
    spread = {
        "kl": lambda: -cp.sum(cp.entr(w)) / n,
        "chi2": lambda: cp.sum_squares(w - 1) / (2 * n),
        "chi2full": lambda: cp.sum_squares(w - 1) / n,
        "tv": lambda: cp.norm1(w - 1) / n,
    }[divergence]()
    problem = cp.Problem(cp.Maximize(risk @ w / n), [cp.sum(w) == n, spread <= radius])
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("radius", [0.05, 0.1, 0.5, 1.5])
def test_worst_case_means_equal_convex_programs(divergence: str, radius: float) -> None:
    risks = [*map(np.array, SMALL_RISKS), np.random.default_rng(0).normal(size=9)]
    for risk in risks:
        assert worst_case_mean(risk, radius, divergence) == pytest.approx(
            _program(risk, radius, divergence), abs=2e-6
        )


def test_worked_worst_case_means() -> None:
    """I5.1, the columns without the isotonic constraint, at radii .05, .1, .5."""
    expected = [
        (0, "kl", 0.65678160, 0.71979463, 0.95181125),
        (0, "chi2", 0.65811388, 0.72360680, 1.0),
        (1, "kl", 0.48665861, 0.55160830, 0.81888821),
        (1, "chi2", 0.48240453, 0.54415184, 0.80473785),
        (2, "kl", 0.50362168, 0.54068400, 0.69770610),
        (2, "chi2", 0.50115861, 0.53615632, 0.68264912),
    ]
    for which, divergence, *values in expected:
        risk = np.array(SMALL_RISKS[which])
        got = [worst_case_mean(risk, radius, divergence) for radius in (0.05, 0.1, 0.5)]
        assert np.allclose(got, values, atol=6e-9, rtol=0)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_worst_mean_of_an_indicator_is_the_bernoulli_bound(divergence: str) -> None:
    """I5.2: 1 - g(.9)."""
    indicator = np.r_[np.ones(10), np.zeros(90)]
    assert worst_case_mean(indicator, 0.05, divergence) == pytest.approx(
        1 - worst_case_probability(0.9, 0.05, divergence), abs=1e-12
    )


@given(divergences, st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.floats(0, 5))
def test_worst_mean_lies_between_mean_and_maximum(divergence: str, risk: list[float], radius: float) -> None:
    values = np.array(risk)
    got = worst_case_mean(values, radius, divergence)
    assert values.mean() - 1e-9 <= got <= values.max() + 1e-9


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("unit", [1e-300, 4.4e-162, 1e150])
def test_a_worst_mean_has_the_unit_of_the_losses(divergence: str, unit: float) -> None:
    risk = np.array([0.0, 0.25, 1.0])
    expected = worst_case_mean(risk, 0.5, divergence)
    assert worst_case_mean(unit * risk, 0.5, divergence) / unit == pytest.approx(expected, rel=1e-9)


def test_a_radius_below_rounding_gives_the_mean() -> None:
    for n in range(2, 40):
        risk = np.linspace(0.0, 1.0, n)
        for divergence in DIVERGENCES:
            for radius in (1e-300, 5e-324):
                assert worst_case_mean(risk, radius, divergence) == pytest.approx(0.5, abs=1e-7)


def test_plug_in_radii() -> None:
    """F4.8, on any scale."""
    source, target = np.array([0.25, 0.5, 1, 2]), np.array([0.5, 1, 2, 4])
    for scale in (1.0, 7.0):
        assert plug_in_radius(scale * source, scale * target, "kl") == pytest.approx(0.41111211141754384)
        assert plug_in_radius(scale * source, scale * target, "chi2") == pytest.approx(0.25555555555555554)
        assert plug_in_radius(scale * source, None, "chi2full") == pytest.approx(2 * 0.25555555555555554)
    assert plug_in_radius(source, source / 9, "kl") == 0.0


def test_plug_in_radii_find_the_truth() -> None:
    """N(1,1) against N(0,1): KL 1/2, chi2full e - 1, tv 2·(2Φ(1/2) - 1)."""
    rng = np.random.default_rng(0)
    source, target = (np.exp(rng.normal(mean, 1, 400_000) - 0.5) for mean in (0.0, 1.0))
    assert plug_in_radius(source, target, "kl") == pytest.approx(0.5, abs=0.01)
    assert plug_in_radius(source, None, "kl") == pytest.approx(0.5, abs=0.02)
    assert plug_in_radius(source, target, "chi2full") == pytest.approx(math.e - 1, rel=0.1)
    assert plug_in_radius(source, target, "tv") == pytest.approx(2 * math.erf(0.5 / math.sqrt(2)), abs=0.01)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'chi2'"):
        check_divergence("ch2")
    with pytest.raises(UsageError, match="-1"):
        check_radius(-1)
    with pytest.raises(UsageError, match="nan"):
        check_radius(math.nan)
    with pytest.raises(UsageError, match="all likelihood ratios"):
        plug_in_radius(np.zeros(3), None, "kl")
    assert (check_divergence("kl"), check_radius(1)) == ("kl", 1.0)
