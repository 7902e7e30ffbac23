"""Regularized adaptive prediction sets (Angelopoulos et al. 2021): APS with a price on low ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.scores.scoring import as_probability, as_uniform, mass_before, of_class, up_to

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0

PENALTY = 0.01
"""Price of one more class (λ of the paper), in units of probability."""

FREE_CLASSES = 5
"""Number of classes that cost nothing (k_reg of the paper)."""


def score(prediction: FloatArray, outcome: IntArray, *, uniform: FloatArray | None = None) -> FloatArray:
    """APS score plus ``PENALTY`` for every class by which the rank of y (from 1) exceeds ``FREE_CLASSES``.

    With at most ``FREE_CLASSES`` classes it is the score of ``aps``. The two constants are those of the
    authors' tutorial; the paper tunes them on data of their own, which would spend labeled rows here.

    Parameters
    ----------
    prediction : array of shape (n, K)
        Class probabilities.
    outcome : int array of shape (n,)
        Class indices 0..K-1.
    uniform : array of shape (n,), optional
        Independent uniform numbers in [0, 1]; pass those of a row again to `region`.

    Returns
    -------
    array of shape (n,)
    """
    return of_class(_all_classes(prediction, uniform), outcome)


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> BoolArray:
    """Classes whose score is at most the threshold, shape (n, K)."""
    return up_to(_all_classes(prediction, uniform), threshold)


def _all_classes(prediction: FloatArray, uniform: FloatArray | None) -> FloatArray:
    probability = as_probability(prediction)
    before, rank = mass_before(probability)
    excess = np.maximum(rank + 1 - FREE_CLASSES, 0)
    randomized = as_uniform(uniform, probability.shape[0]) * probability
    return before + randomized + PENALTY * excess
