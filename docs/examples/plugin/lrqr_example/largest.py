"""One threshold for all rows: the largest calibration score."""

from typing import Any, ClassVar

import numpy as np

from lrqr.methods.estimator import ThresholdEstimator, refuse_known


class Largest(ThresholdEstimator):
    """Covers a row like the n calibration rows with probability n/(n+1) or more.

    Parameters
    ----------
    coverage : float
        Plays no part, but every method has it.

    Attributes
    ----------
    threshold_ : float
        In score units.
    """

    STATE: ClassVar[dict[str, Any]] = {"threshold_": float}

    def fit(self, X, y, *, X_target=None, X_source=None, ratio=None):
        """Take the largest of the scores y (n,)."""
        refuse_known(ratio, "the largest score has no use for likelihood ratios")
        _, scores, _ = self._start(X, y)
        for name, rows in (("X_target", X_target), ("X_source", X_source)):
            if rows is not None:
                self._rows(rows, name)
        self.threshold_ = float(scores.max())
        return self

    def predict(self, X, *, ratio=None):
        """Return the same threshold for every row, shape (n,)."""
        refuse_known(ratio, "the largest score has no use for likelihood ratios")
        return np.full(len(self._rows(X)), self.threshold_)


ESTIMATOR = Largest
