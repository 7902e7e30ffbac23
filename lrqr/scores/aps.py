"""Adaptive prediction sets (Romano, Sesia, Candès 2020): the mass ranked before the class.

Without ``uniform`` the set is the plain one of the paper: it runs down the ranking up to and including the
class at which the threshold is passed, so the most probable class has score 0 and a set is never empty for
thresholds from 0. The randomized set drops that last class with the right probability: at the same threshold
it lies inside the plain one, row by row. A class of probability zero scores 1, so it joins a set only where
the threshold says that the model's zeros cannot be trusted.
"""

from lrqr.arrays import FloatArray
from lrqr.scores.scoring import as_uniform, class_score, mass_before

TASK = "classification"
INPUTS: tuple[str, ...] = ("probability",)
LOWEST = 0.0


def all_classes(probability: FloatArray, uniform: FloatArray | None) -> FloatArray:
    """Mass of the classes ranked before each class, plus ``uniform * p`` when randomized."""
    before, _ = mass_before(probability)
    return before + as_uniform(uniform, probability.shape[0]) * probability


score, region = class_score(all_classes)
