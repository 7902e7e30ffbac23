"""From calibration scores to thresholds, intervals and sets, in scikit-learn's manner."""

from __future__ import annotations

from lrqr.conformal.classifier import ConformalClassifier
from lrqr.conformal.infinity import cap_infinite
from lrqr.conformal.regressor import ConformalRegressor
from lrqr.conformal.threshold import ThresholdModel

__all__ = ["ConformalClassifier", "ConformalRegressor", "ThresholdModel", "cap_infinite"]
