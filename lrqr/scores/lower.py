"""Signed residual ``prediction - y``, for a lower bound alone: ``[prediction - threshold, inf)``.

``--side lower`` takes it in place of `absolute`. A bound above the prediction, of a model that predicts too
low, is an answer too: its threshold is negative.
"""

import math

from lrqr.arrays import FloatArray, as_matrix
from lrqr.scores.scoring import Edges, interval_score

TASK = "regression"
INPUTS: tuple[str, ...] = ("prediction",)
LOWEST = -math.inf
SIDE = "lower"


def edges(prediction: FloatArray) -> Edges:
    """Return the prediction, shape (n, 1) in units of the outcome, as both edges."""
    center = as_matrix(prediction, "prediction", columns=1)[:, 0]
    return center, center, None


score, region = interval_score(edges, SIDE)
