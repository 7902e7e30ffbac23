"""Error in percent of the prediction, but at least of 1: ``|y - p| / max(|p|, 1)``."""

import numpy as np

from lrqr.arrays import as_matrix
from lrqr.scores.scoring import interval_score

TASK = "regression"
INPUTS = ("prediction",)
LOWEST = 0.0


def edges(prediction):
    center = as_matrix(prediction, "prediction", columns=1)[:, 0]
    return center, center, np.maximum(np.abs(center), 1.0)


score, region = interval_score(edges)
