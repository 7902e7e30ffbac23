"""Absolute residual, ``|y - prediction|``; the region is ``prediction ± threshold``."""

from lrqr.arrays import FloatArray, as_matrix
from lrqr.scores.scoring import Edges, interval_score

TASK = "regression"
INPUTS: tuple[str, ...] = ("prediction",)
LOWEST = 0.0


def edges(prediction: FloatArray) -> Edges:
    """Return the prediction, shape (n, 1) in units of the outcome, as both edges."""
    center = as_matrix(prediction, "prediction", columns=1)[:, 0]
    return center, center, None


score, region = interval_score(edges)
