"""Weighted conformal prediction: scores weighted by the likelihood ratio."""

from lrqr.methods.estimator import WeightedThreshold


class WeightedConformal(WeightedThreshold):
    """Weighted conformal prediction of Tibshirani, Barber, Candès and Ramdas (2019), the paper's WCP.

    With the true ratio it covers a target row with probability at least 1-α at any n; with an estimate,
    up to half the normalized mean absolute error of the ratio. A threshold is finite iff the row's ratio
    is at most α/(1-α) times the sum of the calibration ratios.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    clip : (low, high), optional
        Bounds of the ratios of calibration rows and of new rows, whose mean on the source is 1. Unbounded by
        default; the scripts of Yang et al. (2024) use (.05, 10).
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


ESTIMATOR = WeightedConformal
