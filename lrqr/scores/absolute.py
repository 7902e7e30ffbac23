"""Absolute residual: ``|y - prediction|``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.arrays import as_matrix, as_vector
from lrqr.scores.scoring import as_thresholds, interval

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

TASK = "regression"
INPUTS: tuple[str, ...] = ("prediction",)
LOWEST = 0.0


def score(prediction: FloatArray, outcome: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """Absolute residual in units of the outcome.

    Parameters
    ----------
    prediction : array of shape (n, 1)
    outcome : array of shape (n,)

    Returns
    -------
    array of shape (n,)
    """
    center = as_matrix(prediction, "prediction", columns=1)[:, 0]
    return np.abs(as_vector(outcome, "outcome", length=center.shape[0]) - center)


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """``prediction ± threshold`` as closed bounds of shape (n, 2); empty, ``(+inf, -inf)``, below zero."""
    center = as_matrix(prediction, "prediction", columns=1)[:, 0]
    return interval(center, center, as_thresholds(threshold, center.shape[0]))
