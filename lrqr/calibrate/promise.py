"""Whether the data can support the promise: what a user must be told of a fit, also without `lrqr fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.stats.quantiles import rows_needed

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray
    from lrqr.calibrate.threshold import ThresholdModel

_MOST = 0.5  # as in lrqr.stats: from here on there is no overlap to speak of, below it is little


def few_rows_warning(model: ThresholdModel) -> str | None:
    """Return what to say if the calibration rows are too few for the level; None where the method says so."""
    needed = rows_needed(model.coverage_)
    says_so = model.method_ != "lrqr" and model.learned_ is None  # learned features: fitted at another level
    if says_so or model.n_source_ >= needed:
        return None
    return (
        f"{model.n_source_} calibration rows cannot support a coverage of {model.coverage_:g}, which needs "
        f"n >= {needed}: add rows or lower the coverage"
    )


def overlap_warning(model: ThresholdModel, X_target: FloatArray) -> str | None:
    """Return what to say if more than α of the target rows have no finite threshold, else None.

    Parameters
    ----------
    model : ThresholdModel
        Fitted with ``X_target``.
    X_target : array of shape (n2, d)

    Notes
    -----
    It asks what was fitted already: the likelihood ratio of the learned features, or that of a method that
    weighs rows. Without either (given features of a method that uses no ratio) nothing is known.
    """
    share = _unanswered(model, X_target)
    if share <= 1.0 - model.coverage_:
        return None
    taken = (
        "; the given features were taken instead, and thresholds there are extrapolated"
        if model.feature_map == "auto" and model.unanswered_ > 0.0
        else ""
    )
    extent = "no" if share >= _MOST else "little"
    return (
        f"{extent} overlap: {100 * share:.0f} % of the target rows lie where the source has "
        f"too few rows for a finite threshold; no method can promise coverage there{taken}"
    )


def _unanswered(model: ThresholdModel, X_target: FloatArray) -> float:
    if model.learned_ is not None or model.unanswered_ > 0.0:
        return model.unanswered_
    weighs = model.estimator_.USES_RATIO and not model.known_ratio_
    # with fewer rows every threshold is infinite, wherever the target lies; that is said elsewhere
    if not weighs or not len(X_target) or model.n_source_ < rows_needed(model.coverage_):
        return 0.0
    return float(np.isposinf(model.predict(X_target)).mean())
