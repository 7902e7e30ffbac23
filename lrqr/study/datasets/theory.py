"""The setting of the theorems of arXiv:2502.13030: a likelihood ratio inside the linear class, or outside.

Unlike the other data sets this one has unlabeled source rows of its own, so that n1, n2 and n3 vary
independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

TITLE = "Scores whose spread is linear, under a likelihood ratio that is linear or is not"
SOURCE = "made on the spot"
LICENSE = "none needed"
FILES: tuple[DataFile, ...] = ()
SHIFTS = ("inside", "outside")

_SLOPE, _RATE = 0.9, 2.0


def split(
    shift: str,
    *,
    seed: int,
    d: int = 20,
    labeled_rows: int = 200,
    unlabeled_rows: int = 400,
    test_rows: int = 2000,
) -> ShiftData:
    """Draw one sample. Source features are independent and uniform on [-1, 1]; only x_1 shifts.

    The prediction is 0 and the outcome (1 + .5 x_1 + .4 x_2) e with standard normal e, so every conditional
    quantile of the absolute score is linear in x.

    Parameters
    ----------
    shift : one of SHIFTS
        ``inside``: r(x) = 1 + .9 x_1. ``outside``: r(x) proportional to exp(2 x_1).
    seed : int
    d : int
        Features, at least 2; all but two are noise.
    labeled_rows, unlabeled_rows, test_rows : int
        n1; n2 = n3; labeled target rows for judging.
    """
    check_shift(shift, SHIFTS, "theory")
    rng = np.random.default_rng(seed)
    source = _rows(rng, _draw(rng, labeled_rows, d, ""), shift)
    unlabeled = _draw(rng, unlabeled_rows, d, "")
    target = _rows(rng, _draw(rng, unlabeled_rows, d, shift), shift)
    test = _rows(rng, _draw(rng, test_rows, d, shift), shift)
    names = tuple(f"x{index + 1}" for index in range(d))
    return ShiftData(shift, names, source, target.unlabeled(), test, unlabeled=unlabeled)


def _draw(rng: np.random.Generator, count: int, d: int, shift: str) -> FloatArray:
    """Draw features of the source, or of the target by inverse distribution functions."""
    x = rng.uniform(-1.0, 1.0, size=(count, d))
    u = rng.uniform(size=count)
    if shift == "inside":
        x[:, 0] = (np.sqrt((1.0 - _SLOPE) ** 2 + 4.0 * _SLOPE * u) - 1.0) / _SLOPE
    elif shift == "outside":
        x[:, 0] = np.log(np.exp(-_RATE) + u * (np.exp(_RATE) - np.exp(-_RATE))) / _RATE
    return x


def _rows(rng: np.random.Generator, x: FloatArray, shift: str) -> Rows:
    outcome = (1.0 + 0.5 * x[:, 0] + 0.4 * x[:, 1]) * rng.standard_normal(len(x))
    ratio = 1.0 + _SLOPE * x[:, 0] if shift == "inside" else np.exp(_RATE * x[:, 0]) * _RATE / np.sinh(_RATE)
    return Rows(x, outcome, np.zeros((len(x), 1)), ratio)
