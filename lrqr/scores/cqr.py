"""Conformalized quantile regression (Romano, Patterson, Candès 2019): distance outside two quantiles.

The score ``max(lower - y, y - upper)`` is negative inside the two quantiles; the region is
``[lower - threshold, upper + threshold]``.
"""

import math

from lrqr.arrays import FloatArray, as_matrix
from lrqr.scores.scoring import Edges, interval_score

TASK = "regression"
INPUTS: tuple[str, ...] = ("lower", "upper")
LOWEST = -math.inf


def edges(prediction: FloatArray) -> Edges:
    """Return the lower and the upper quantile of the rows, columns of shape (n, 2). They may cross."""
    quantiles = as_matrix(prediction, "lower and upper quantile", columns=2)
    return quantiles[:, 0], quantiles[:, 1], None


score, region = interval_score(edges)
