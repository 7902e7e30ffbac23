"""Moments add up, merge in any order and keep their digits far from zero."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lrqr.errors import DataError
from lrqr.stats.moments import Moments

MATRICES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.floats(-100, 100, width=16)
)


NOTHING = np.empty((0, 3))


def direct(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X.sum(axis=0), X.T @ X


@given(MATRICES, MATRICES)
def test_merging_is_stacking(first: np.ndarray, second: np.ndarray) -> None:
    merged = Moments.of(first).merge(Moments.of(second))
    total, moment = direct(np.vstack([first, second]))
    assert merged.count == len(first) + len(second)
    np.testing.assert_allclose(merged.count * merged.mean, total, rtol=1e-9, atol=1e-9)
    about_zero = merged.count * merged.augmented_second()[1:, 1:]
    np.testing.assert_allclose(about_zero, moment, rtol=1e-9, atol=1e-9)
    other = Moments.of(second).merge(Moments.of(first))
    np.testing.assert_allclose(other.scatter, merged.scatter, rtol=1e-9, atol=1e-9)


@given(MATRICES)
def test_the_empty_sample_changes_nothing(X: np.ndarray) -> None:
    one = Moments.of(X)
    for same in (Moments.of(NOTHING).merge(one), one.merge(Moments.of(NOTHING))):
        np.testing.assert_array_equal(same.mean, one.mean)
        np.testing.assert_array_equal(same.scatter, one.scatter)


@given(MATRICES)
def test_affine_moments_are_those_of_affine_rows(X: np.ndarray) -> None:
    shift, scale = np.array([1.0, -2.0, 0.5]), np.array([2.0, 0.25, 4.0])
    moved, expected = Moments.of(X).affine(shift, scale), Moments.of((X - shift) / scale)
    np.testing.assert_allclose(moved.mean, expected.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved.scatter, expected.scatter, rtol=1e-9, atol=1e-8)


def test_augmented_moments_are_means_over_rows_with_a_constant_and_a_ridge_that_spares_it() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4))
    phi = np.c_[np.ones(20), X]
    expected = phi.T @ phi / 20 + 0.3 * np.diag([0.0, 1, 1, 1, 1])
    np.testing.assert_allclose(Moments.of(X).augmented_second(0.3), expected, rtol=1e-12)
    np.testing.assert_allclose(Moments.of(X).augmented_mean(), phi.mean(axis=0), rtol=1e-12)


def test_variance_survives_an_offset_of_a_hundred_million() -> None:
    small = [Fraction(k % 7) for k in range(100)]
    mean = sum(small) / 100
    variance = sum((value - mean) ** 2 for value in small) / 100
    X = np.array([[1e8 + float(value)] for value in small])
    pieces = Moments.of(np.empty((0, 1)))
    for start in range(0, 100, 13):
        pieces = pieces.merge(Moments.of(X[start : start + 13]))
    assert pieces.spread[0] ** 2 == pytest.approx(float(variance), rel=1e-7)


def test_refusing_nonsense() -> None:
    X = np.arange(12.0).reshape(4, 3)
    with pytest.raises(DataError, match="3 and of 2"):
        Moments.of(X).merge(Moments.of(NOTHING[:, :2]))
    with pytest.raises(DataError, match="empty"):
        Moments.of(NOTHING).augmented_mean()
