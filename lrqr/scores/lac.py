"""Least ambiguous classifier (Sadinle, Lei, Wasserman 2019): one minus the probability of the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.scores.scoring import as_probability, of_class, up_to

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0


def score(prediction: FloatArray, outcome: IntArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """``1 - p_y``.

    Parameters
    ----------
    prediction : array of shape (n, K)
        Class probabilities.
    outcome : int array of shape (n,)
        Class indices 0..K-1.

    Returns
    -------
    array of shape (n,), in [0, 1]
    """
    return of_class(_all_classes(prediction), outcome)


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> BoolArray:  # noqa: ARG001 - this score is not randomized
    """Classes with ``1 - p <= threshold``, shape (n, K)."""
    return up_to(_all_classes(prediction), threshold)


def _all_classes(prediction: FloatArray) -> FloatArray:
    return np.maximum(1.0 - as_probability(prediction), 0.0)  # a probability may exceed 1 by rounding
