"""Normalized residual: ``|y - prediction| / spread``, for a model that also says how unsure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.arrays import as_matrix, as_vector
from lrqr.errors import DataError
from lrqr.scores.scoring import as_thresholds, interval

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

TASK = "regression"
INPUTS: tuple[str, ...] = ("prediction", "spread")
LOWEST = 0.0


def score(prediction: FloatArray, outcome: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """Residual in units of the row's spread.

    Parameters
    ----------
    prediction : array of shape (n, 2)
        Columns: prediction, and a positive spread such as a standard deviation.
    outcome : array of shape (n,)

    Returns
    -------
    array of shape (n,), without unit
    """
    center, spread = _parts(prediction)
    residual = np.abs(as_vector(outcome, "outcome", length=center.shape[0]) - center)
    return residual / spread


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """``prediction ± threshold * spread``, closed bounds (n, 2); empty, ``(+inf, -inf)``, below zero."""
    center, spread = _parts(prediction)
    return interval(center, center, as_thresholds(threshold, center.shape[0]), spread)


def _parts(prediction: FloatArray) -> tuple[FloatArray, FloatArray]:
    columns = as_matrix(prediction, "prediction and spread", columns=2)
    center, spread = columns[:, 0], columns[:, 1]
    if np.any(spread <= 0):
        row = int(np.flatnonzero(spread <= 0)[0])
        raise DataError(
            f"spread must be positive, but row {row} (from 0) has {spread[row]:g}; give it a floor"
        )
    return center, spread
