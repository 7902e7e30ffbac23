"""Weighted conformal prediction: scores weighted by the likelihood ratio."""

from typing import Any, Self

from lrqr.arrays import FloatArray
from lrqr.methods.estimator import RatioEstimator, warn_few
from lrqr.stats.quantiles import weighted_quantile


class WeightedConformal(RatioEstimator):
    """Weighted conformal prediction of Tibshirani, Barber, Candès and Ramdas (2019), the paper's WCP.

    With the true ratio it covers a target row with probability at least 1-α at any n; with an estimate,
    up to half the normalized mean absolute error of the ratio. A threshold is finite iff the row's ratio
    is at most α/(1-α) times the sum of the calibration ratios.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    classifier : {"logistic", "hist-gradient-boosting"}
        What estimates the ratio when none is given.
    cross_fit : int
        Folds of that estimate. The paper's own numbers are in-sample; out-of-fold values cover better.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
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
        classifier: str = "logistic",
        cross_fit: int = 5,
        random_state: int = 0,
    ) -> None:
        self.coverage = coverage
        self.classifier = classifier
        self.cross_fit = cross_fit
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, X_target: Any = None, X_source: Any = None, ratio: Any = None) -> Self:
        """Store the scores y (n1,) with the ratios of their rows; without ``X_target`` all ratios are 1."""
        features, self.scores_, level = self._start(X, y)
        self.weights_ = self._resolve(ratio, features, X_target, X_source).calibration
        warn_few(self.weights_, level)
        return self

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return each row's threshold (n,) in score units, +inf where its ratio is too large."""
        rows = self._rows(X)
        return weighted_quantile(self.scores_, self.weights_, self._rows_ratio(rows, ratio), self.coverage)


ESTIMATOR = WeightedConformal
