"""Weighted conformal prediction with room for a change of the score's conditional distribution."""

from typing import Any, Self

from lrqr.arrays import FloatArray
from lrqr.methods.divergences import check_divergence, check_radius, robust_level
from lrqr.methods.estimator import RatioEstimator, warn_few
from lrqr.stats.quantiles import weighted_quantile


class RobustWeighted(RatioEstimator):
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

    def __init__(
        self,
        coverage: float = 0.9,
        *,
        divergence: str = "kl",
        radius: float = 0.02,
        classifier: str = "logistic",
        cross_fit: int = 5,
        random_state: int = 0,
    ) -> None:
        self.coverage = coverage
        self.divergence = divergence
        self.radius = radius
        self.classifier = classifier
        self.cross_fit = cross_fit
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, X_target: Any = None, X_source: Any = None, ratio: Any = None) -> Self:
        """Store the scores y (n1,) with the ratios of their rows; without ``X_target`` all ratios are 1."""
        features, self.scores_, level = self._start(X, y)
        self.level_ = robust_level(level, check_radius(self.radius), check_divergence(self.divergence))
        self.weights_ = self._resolve(ratio, features, X_target, X_source).calibration
        warn_few(self.weights_, self.level_)
        return self

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return each row's threshold (n,) in score units, +inf where its ratio is too large."""
        rows = self._rows(X)
        return weighted_quantile(self.scores_, self.weights_, self._rows_ratio(rows, ratio), self.level_)


ESTIMATOR = RobustWeighted
