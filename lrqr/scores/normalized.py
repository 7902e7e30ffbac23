"""Normalized residual, ``|y - prediction| / spread``, for a model that also says how unsure it is.

The score has no unit; the region is ``prediction ± threshold * spread``.
"""

import numpy as np

from lrqr.arrays import FloatArray, as_matrix
from lrqr.errors import DataError
from lrqr.scores.scoring import Edges, interval_score

TASK = "regression"
INPUTS: tuple[str, ...] = ("prediction", "spread")
LOWEST = 0.0
POSITIVE = ("spread",)


def edges(prediction: FloatArray) -> Edges:
    """Return the prediction as both edges, and the spread: the two columns of shape (n, 2), spread > 0."""
    columns = as_matrix(prediction, "prediction and spread", columns=2)
    center, spread = columns[:, 0], columns[:, 1]
    if np.any(spread <= 0):
        row = int(np.flatnonzero(spread <= 0)[0])
        raise DataError(
            f"spread must be positive, but row {row} (from 0) has {spread[row]:g}; give it a floor"
        )
    return center, center, spread


score, region = interval_score(edges)
