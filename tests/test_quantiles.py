"""Exact ranks and weighted quantiles: worked numbers, exact fractions, brute force, laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrqr.stats.quantiles import (
    conformal_quantile,
    conformal_rank,
    order_statistic,
    rows_needed,
    tolerant_ceil,
    weighted_quantile,
)


def _one(scores: list[float], weights: list[float], test_weight: float, level: float) -> float:
    return float(weighted_quantile(np.array(scores), np.array(weights), np.array([test_weight]), level)[0])


def _brute_force(scores: list[int], weights: list[int], test_weight: int, level: Fraction) -> float:
    """Try every candidate threshold in exact arithmetic."""
    total = sum(weights) + test_weight
    for candidate in sorted(scores):
        mass = sum(w for s, w in zip(scores, weights, strict=True) if s <= candidate)
        if total > 0 and Fraction(mass) >= level * total:
            return float(candidate)
    return math.inf


@pytest.mark.parametrize(
    ("n", "alpha", "threshold"),
    [(9, 0.1, 9.0), (8, 0.1, math.inf), (19, 0.1, 18.0), (99, 0.1, 90.0), (19, 0.05, 19.0)],
)
def test_split_thresholds_of_one_to_n(n: int, alpha: float, threshold: float) -> None:
    """Float ranks and interpolated quantiles, as some tools have them, fail here."""
    assert conformal_quantile(np.arange(1.0, n + 1), 1 - alpha) == threshold


def test_split_threshold_with_ties() -> None:
    assert conformal_quantile(np.array([1.0, 1, 1, 2, 2]), 0.6) == 2.0


@pytest.mark.parametrize(
    "alpha", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(1, 3)]
)
def test_ranks_equal_exact_rational_ranks(alpha: Fraction) -> None:
    """Some tools are wrong in hundreds of these."""
    for n in range(1, 2001):
        exact = math.ceil((n + 1) * (1 - alpha))
        assert conformal_rank(n, 1 - float(alpha)) == exact
        assert conformal_rank(n, float(1 - alpha)) == exact


@pytest.mark.parametrize(("level", "n"), [(0.9, 9), (0.95, 19), (0.8, 4), (0.99, 99), (0.5, 1), (2 / 3, 2)])
def test_rows_needed_is_the_first_finite_size(level: float, n: int) -> None:
    assert rows_needed(level) == n
    assert conformal_rank(n, level) <= n
    assert conformal_rank(n - 1, level) > n - 1


def test_ceil_forgives_rounding_only() -> None:
    assert tolerant_ceil(9.0 + 1e-12) == 9
    assert tolerant_ceil(9.0 + 1e-6) == 10
    assert tolerant_ceil(8.5) == 9


def test_order_statistic_leaves_its_range() -> None:
    scores = np.array([2.0, 1.0])
    assert [order_statistic(scores, k) for k in (0, 1, 2, 3)] == [-math.inf, 1.0, 2.0, math.inf]


@pytest.mark.parametrize(("alpha", "threshold"), [(0.25, 4.0), (0.5, 3.0), (0.4, 4.0), (0.1, math.inf)])
@pytest.mark.parametrize("scale", [1.0, 7.0, 1e6, 1e-6])
def test_weighted_worked_example(alpha: float, threshold: float, scale: float) -> None:
    """W2.1: the exact tie at α=.5 gives 3, and the scale of the weights does not matter."""
    weights = [scale * w for w in (3.0, 1.0, 4.0, 2.0)]
    assert _one([3, 1, 4, 2], weights, scale * 2.0, 1 - alpha) == threshold


def test_weighted_finite_up_to_its_bound() -> None:
    """W2.3: finite iff w* <= α/(1-α)·Σw, equality included."""
    assert _one([1, 2, 3, 4], [1, 1, 1, 1], 1.0, 0.8) == 4.0
    assert _one([1, 2, 3, 4], [1, 1, 1, 1], 1.01, 0.8) == math.inf


def test_weighted_edge_weights() -> None:
    """W2.4, and rows without any mass."""
    assert _one([1, 2, 3], [1, 0, 1], 0.0, 0.5) == 1.0
    assert _one([1, 2, 3], [0, 0, 1], 0.0, 0.5) == 3.0
    assert _one([1, 2, 3], [0, 0, 0], 0.0, 0.5) == math.inf
    assert _one([1, 2, 3], [0, 0, 0], 1.0, 0.5) == math.inf
    assert _one([], [], 1.0, 0.5) == math.inf
    assert weighted_quantile(np.ones(3), np.ones(3), np.empty(0), 0.5).shape == (0,)


def test_tenths_sum_to_one() -> None:
    """Cumsum of ten tenths has .8999999999999999 at place 8; the ninth score is right."""
    assert _one(list(range(1, 11)), [0.1] * 10, 0.0, 0.9) == 9.0


def test_weights_stay_with_their_scores() -> None:
    """Sorted apart, this would be 4."""
    assert _one([4, 1, 3, 2], [1, 8, 1, 2], 1.0, 0.75) == 2.0


def test_no_rank_too_wide() -> None:
    assert _one(list(range(1, 100)), [1.0] * 99, 1.0, 0.9) == 90.0
    assert _one([1, 2, 3], [1, 1, 2], 0.4, 0.9) == 3.0


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_each_test_row_has_its_own_mass(scale: float) -> None:
    got = weighted_quantile(np.arange(1.0, 21), np.full(20, scale), scale * np.array([0.01, 1.0, 3.0]), 0.9)
    assert got.tolist() == [19.0, 19.0, math.inf]


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=6),
    test_weight=st.integers(0, 6),
    tenths=st.integers(1, 19),
)
def test_weighted_equals_brute_force(rows: list[tuple[int, int]], test_weight: int, tenths: int) -> None:
    scores, weights = [s for s, _ in rows], [w for _, w in rows]
    level = Fraction(tenths, 20)
    assert _one(scores, weights, test_weight, tenths / 20) == _brute_force(
        scores, weights, test_weight, level
    )


@given(n=st.integers(1, 300), percent=st.integers(1, 99), weight=st.sampled_from([1.0, 0.1, 1 / 3, 1e9]))
def test_equal_weights_are_split(n: int, percent: int, weight: float) -> None:
    """W2.2."""
    scores = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    got = _one(scores.tolist(), [weight] * n, weight, percent / 100)
    assert got == conformal_quantile(scores, percent / 100)


def test_order_of_rows_does_not_matter_by_one_bit() -> None:
    rng = np.random.default_rng(0)
    scores, weights = rng.integers(0, 4, 50).astype(float), rng.exponential(size=50)
    tests = rng.exponential(size=20)
    first = weighted_quantile(scores, weights, tests, 0.8)
    for _ in range(20):
        order = rng.permutation(50)
        assert np.array_equal(weighted_quantile(scores[order], weights[order], tests, 0.8), first)


def test_thresholds_grow_with_level_and_test_weight() -> None:
    rng = np.random.default_rng(1)
    scores, weights = rng.normal(size=40), rng.exponential(size=40)
    tests = np.sort(rng.exponential(size=30))
    table = np.array([weighted_quantile(scores, weights, tests, level) for level in (0.5, 0.7, 0.9)])
    pairs = itertools.chain(itertools.pairwise(table), itertools.pairwise(table.T))
    assert all(np.all(low <= high) for low, high in pairs)


def test_large_sums_of_rounded_weights_keep_their_rank() -> None:
    """Rounding of 200,000 equal weights must not move the rank."""
    n = 199_999
    assert _one(list(range(1, n + 1)), [0.1] * n, 0.1, 0.9) == 180_000.0
