"""Synthetic regression with a known likelihood ratio, for checks of coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

TITLE = "Synthetic regression with heteroscedastic noise and a known likelihood ratio"
SOURCE = "made on the spot"
LICENSE = "none needed"
FILES: tuple[DataFile, ...] = ()
SHIFTS = ("none", "linear", "exponential")


def split(
    shift: str,
    *,
    seed: int,
    source_rows: int = 500,
    target_rows: int = 500,
    test_rows: int = 1000,
    d: int = 5,
) -> ShiftData:
    """Draw one sample; the prediction is the true mean, so the score is the noise alone.

    ``y = m(x) + (1 + m(x)^2 / d) e`` with ``m(x) = x_1 + .. + x_d`` and standard normal ``e``. Source
    features are independent and uniform on [-1, 1].

    Parameters
    ----------
    shift : one of SHIFTS
        ``none``: r = 1. ``linear``: r(x) = 1 + m(x) / d, which lies in the linear class. ``exponential``:
        r(x) proportional to exp(m(x)), which does not.
    seed : int
    source_rows, target_rows, test_rows : int
        n1 = n3, n2 and the number of labeled target rows for evaluation.
    d : int
        Number of features.
    """
    check_shift(shift, SHIFTS, "synthetic")
    rng = np.random.default_rng(seed)
    source = _rows(rng, rng.uniform(-1, 1, size=(source_rows, d)), shift)
    target = _rows(rng, _target(rng, target_rows, d, shift), shift)
    test = _rows(rng, _target(rng, test_rows, d, shift), shift)
    names = tuple(f"x{index + 1}" for index in range(d))
    return ShiftData(shift, names, source, target.unlabeled(), test)


def _rows(rng: np.random.Generator, x: FloatArray, shift: str) -> Rows:
    mean = x.sum(axis=1)
    d = x.shape[1]
    outcome = mean + (1 + mean**2 / d) * rng.standard_normal(len(x))
    ratio = {"none": np.ones(len(x)), "linear": 1 + mean / d, "exponential": np.exp(mean)}[shift]
    return Rows(x, outcome, mean[:, None], ratio)


def _target(rng: np.random.Generator, count: int, d: int, shift: str) -> FloatArray:
    """Draw from the target exactly, by inverse distribution functions."""
    u = rng.uniform(size=(count, d))
    if shift == "exponential":  # density proportional to exp(x) in each coordinate
        return np.asarray(np.log(np.exp(-1) + u * (np.exp(1) - np.exp(-1))))
    x = 2 * u - 1
    if shift == "linear":  # a mixture: one coordinate, drawn at random, has the density (1 + x) / 2
        chosen = (np.arange(count), rng.integers(d, size=count))
        x[chosen] = 2 * np.sqrt(u[chosen]) - 1
    return np.asarray(x)
