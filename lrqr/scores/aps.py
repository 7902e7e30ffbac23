"""Adaptive prediction sets (Romano, Sesia, Candès 2020): the mass ranked before the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrqr.scores.scoring import as_probability, as_uniform, mass_before, of_class, up_to

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0


def score(prediction: FloatArray, outcome: IntArray, *, uniform: FloatArray | None = None) -> FloatArray:
    """Mass of the classes ranked before y, plus ``uniform * p_y`` when randomized.

    Without ``uniform`` the set is the plain one of the paper: it runs down the ranking up to and including
    the class at which the threshold is passed, so the most probable class has score 0 and a set is never
    empty for thresholds from 0. The randomized set drops that last class with the right probability: at the
    same threshold it lies inside the plain one, row by row. A class of probability zero scores 1, so it
    joins a set only where the threshold says that the model's zeros cannot be trusted.

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
    array of shape (n,), in [0, 1] up to rounding
    """
    return of_class(_all_classes(prediction, uniform), outcome)


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> BoolArray:
    """Classes whose score is at most the threshold, shape (n, K)."""
    return up_to(_all_classes(prediction, uniform), threshold)


def _all_classes(prediction: FloatArray, uniform: FloatArray | None) -> FloatArray:
    probability = as_probability(prediction)
    before, _ = mass_before(probability)
    return before + as_uniform(uniform, probability.shape[0]) * probability
