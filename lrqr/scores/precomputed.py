"""A score that the user computed: the threshold itself is the answer."""

import numpy as np

from lrqr.arrays import FloatArray, as_vector
from lrqr.scores.scoring import as_thresholds

TASK = "any"
INPUTS: tuple[str, ...] = ()
LOWEST = -np.inf


def score(prediction: FloatArray, outcome: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """Return the given scores (n,): ``outcome`` is the score itself, ``prediction`` has no columns."""
    return as_vector(outcome, "score", length=np.asarray(prediction).shape[0])


def region(prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None) -> FloatArray:  # noqa: ARG001 - this score is not randomized
    """All *scores* up to the threshold, bounds ``(-inf, threshold]`` of shape (n, 2), in score units.

    What outcomes these are, only the owner of the score can tell.
    """
    upper = as_thresholds(threshold, np.asarray(prediction).shape[0])
    bounds = np.column_stack([np.full_like(upper, -np.inf), upper])
    bounds[upper == -np.inf] = np.inf, -np.inf
    return bounds
