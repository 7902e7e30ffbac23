"""Regularized adaptive prediction sets (Angelopoulos et al. 2021): APS with a price on low ranks.

With at most ``FREE_CLASSES`` classes it is the score of `aps`. The two constants are those of the authors'
tutorial; the paper tunes them on data of their own, which would spend labeled rows here.
"""

import numpy as np

from lrqr.arrays import FloatArray
from lrqr.scores.scoring import as_uniform, class_score, mass_before

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0

PENALTY = 0.01
"""Price of one more class (λ of the paper), in units of probability."""

FREE_CLASSES = 5
"""Number of classes that cost nothing (k_reg of the paper)."""


def all_classes(probability: FloatArray, uniform: FloatArray | None) -> FloatArray:
    """APS score plus ``PENALTY`` for every rank (from 1) beyond ``FREE_CLASSES``."""
    before, rank = mass_before(probability)
    excess = np.maximum(rank + 1 - FREE_CLASSES, 0)
    return before + as_uniform(uniform, probability.shape[0]) * probability + PENALTY * excess


score, region = class_score(all_classes)
