"""Least ambiguous classifier (Sadinle, Lei, Wasserman 2019): one minus the probability of the class."""

import numpy as np

from lrqr.arrays import FloatArray
from lrqr.scores.scoring import class_score

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0


def all_classes(probability: FloatArray, _uniform: FloatArray | None) -> FloatArray:
    """``1 - p`` of every class, in [0, 1]."""
    return np.maximum(1.0 - probability, 0.0)  # a probability may exceed 1 by rounding


score, region = class_score(all_classes)
