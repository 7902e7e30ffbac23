"""Signed residual ``y - prediction``, for an upper bound alone: ``(-inf, prediction + threshold]``.

``--side upper`` takes it in place of `absolute`. A bound below the prediction, of a model that predicts too
high, is an answer too: its threshold is negative.
"""

import math

from lrqr.arrays import FloatArray, as_matrix
from lrqr.scores.scoring import Edges, interval_score

TASK = "regression"
INPUTS: tuple[str, ...] = ("prediction",)
LOWEST = -math.inf
SIDE = "upper"


def edges(prediction: FloatArray) -> Edges:
    """Return the prediction, shape (n, 1) in units of the outcome, as both edges."""
    center = as_matrix(prediction, "prediction", columns=1)[:, 0]
    return center, center, None


score, region = interval_score(edges, SIDE)
