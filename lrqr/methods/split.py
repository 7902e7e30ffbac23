"""Split conformal prediction: one threshold, the ⌈(n+1)(1-α)⌉-th smallest score."""

from typing import Any, ClassVar, Self

import numpy as np

from lrqr.arrays import THRESHOLD, FloatArray
from lrqr.methods.estimator import ThresholdEstimator, refuse_known, warn_few
from lrqr.stats.folds import group_size
from lrqr.stats.quantiles import conformal_quantile

_REASON = "split conformal uses no likelihood ratio"


class SplitConformal(ThresholdEstimator):
    """Split conformal prediction, which ignores the target.

    Covers a source row with probability in [1-α, 1-α + 1/(n+1)] (the upper bound without ties), whatever
    the scores. Under covariate shift it promises nothing. Source: Vovk et al. (2005); the paper's
    baseline SCP.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.

    Attributes
    ----------
    threshold_ : float
        In score units, +inf when n < (1-α)/α.
    max_score_ : float
        Largest calibration score.
    """

    STATE: ClassVar[dict[str, Any]] = {"threshold_": THRESHOLD}

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_target: Any = None,
        X_source: Any = None,
        ratio: Any = None,
        groups: Any = None,
    ) -> Self:
        """Take the threshold from the scores y (n1,); the features and unlabeled rows play no part."""
        refuse_known(ratio, _REASON)
        _, scores, level = self._start(X, y)
        for name, rows in (("X_target", X_target), ("X_source", X_source)):
            if rows is not None:
                self._rows(rows, name)
        self.threshold_ = conformal_quantile(scores, level, group_size(groups, np.ones(len(scores))))
        warn_few(np.ones(len(scores)), level)
        return self

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return the same threshold (n,) for every row."""
        refuse_known(ratio, _REASON)
        return np.full(len(self._rows(X)), self.threshold_)


ESTIMATOR = SplitConformal
