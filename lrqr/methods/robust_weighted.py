"""Weighted conformal prediction with room for a change of the score's conditional distribution."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from lrqr.arrays import SHARE
from lrqr.methods.divergences import check_divergence, check_radius, robust_level
from lrqr.methods.estimator import WeightedThreshold


@dataclass(repr=False, eq=False)
class RobustWeighted(WeightedThreshold):
    """Weighted robust conformal prediction of Ai and Ren (2024), the paper's Robust-CP.

    The likelihood ratio corrects the shift of the features; a ball of ``radius`` around the conditional
    distribution of the score protects against a change of that. The threshold is that of weighted
    conformal prediction at the level g⁻¹(1-α) of the ball.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    divergence : {"kl", "chi2", "chi2full", "tv"}
        KL is what Ai and Ren use in all experiments.
    radius : float
        A sensitivity parameter that no data reveal. The LR-QR paper names none; 0.02 is the center of
        Ai and Ren's grid on real data. 0 is weighted conformal prediction.
    clip : (low, high), optional
        Bounds of the ratios of calibration rows and of new rows, whose mean on the source is 1. Unbounded by
        default; the scripts of Yang et al. (2024) use (.05, 10).
    classifier, cross_fit, random_state
        How the ratio is estimated; see ``lrqr.stats.ratio.LikelihoodRatio``.

    Attributes
    ----------
    level_ : float
        g⁻¹(1-α), the level in use.
    scores_, weights_ : (n,) arrays
        Calibration scores and their ratios.
    ratio_ : LikelihoodRatio or None
        None with known ratios or without a target.
    max_score_ : float
        Largest calibration score.
    """

    STATE: ClassVar[dict[str, Any]] = {"level_": SHARE}

    _: KW_ONLY
    divergence: str = "kl"
    radius: float = 0.02

    def _nominal(self, level: float) -> float:
        self.level_ = robust_level(level, check_radius(self.radius), check_divergence(self.divergence))
        return self.level_


ESTIMATOR = RobustWeighted
