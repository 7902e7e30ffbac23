"""Negative log-probability of the class, ``-log p``: the score of images in section 5.3 of arXiv:2502.13030.

It ranks outcomes as `lac` does, and tells small probabilities apart: .001 and .0001 are 2.3 apart, as .1 and
.01 are. LR-QR gives other thresholds for the two, since it fits a function to the scores.
"""

import numpy as np

from lrqr.arrays import FloatArray
from lrqr.scores.scoring import class_score

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0


def all_classes(probability: FloatArray, _uniform: FloatArray | None) -> FloatArray:
    """``-log p`` of every class, natural logarithm; +inf where p = 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(-np.log(probability), 0.0)  # a probability may exceed 1 by rounding


score, region = class_score(all_classes)
