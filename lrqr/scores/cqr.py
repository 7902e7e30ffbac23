"""Conformalized quantile regression (Romano, Patterson, Candès 2019): distance outside two quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.arrays import as_matrix, as_vector
from lrqr.scores.scoring import as_thresholds, interval

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

TASK = "regression"
INPUTS: tuple[str, ...] = ("lower", "upper")
LOWEST = -np.inf


def score(prediction: FloatArray, outcome: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """``max(lower - y, y - upper)``: negative inside the two quantiles.

    Parameters
    ----------
    prediction : array of shape (n, 2)
        Columns: lower and upper quantile. They may cross.
    outcome : array of shape (n,)

    Returns
    -------
    array of shape (n,), in units of the outcome
    """
    edges = as_matrix(prediction, "lower and upper quantile", columns=2)
    y = as_vector(outcome, "outcome", length=edges.shape[0])
    return np.maximum(edges[:, 0] - y, y - edges[:, 1])


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """``[lower - threshold, upper + threshold]``, bounds of shape (n, 2); empty ones are ``(+inf, -inf)``."""
    edges = as_matrix(prediction, "lower and upper quantile", columns=2)
    return interval(edges[:, 0], edges[:, 1], as_thresholds(threshold, edges.shape[0]))
