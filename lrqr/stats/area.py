"""Interval for the area under the curve of a cross-fitted domain classifier."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import norm

# Variance of an out-of-fold area, in units of that of a classifier that was fixed beforehand. Without a
# shift each pair of folds enters twice (once as training, once as held-out rows), which doubles it; the
# penalty that is chosen on the same folds adds the rest. tests/test_diagnostics.py measures it.
CROSS_FITTED = 2.5
_STEP = 1e-12


def area_interval(
    area: float, n_source: int, n_target: int, confidence: float = 0.95, *, inflation: float = CROSS_FITTED
) -> tuple[float, float]:
    """Return the interval (low, high) for an area under the ROC curve.

    All θ with |area - θ| <= z · sd(θ), where sd(θ) is that of Hanley & McNeil (1982) with the two sample
    sizes averaged: method 5 of Newcombe, Statistics in Medicine 25 (2006) 559-573. It stays in [0, 1], is
    never empty or a point, also when the samples are separated, and at θ = 1/2 its sd is the exact one of the
    Mann-Whitney statistic: with ``inflation`` 1 it holds 1/2 just when that test (no ties) does not reject.

    Parameters
    ----------
    area : float
        Estimated area.
    n_source, n_target : int
        Rows that it was estimated from.
    confidence : float
        Of the interval.
    inflation : float
        Factor on the variance: 1 for scores that were fixed before these rows were seen.

    Examples
    --------
    >>> [round(end, 3) for end in area_interval(1.0, 50, 50, inflation=1)]
    [0.96, 1.0]
    """
    z = float(norm.ppf(0.5 + confidence / 2.0)) * math.sqrt(inflation)

    def excess(theta: float) -> float:
        return abs(area - theta) - z * _spread(theta, n_source, n_target)

    # An area of 0 or 1 solves the equation itself; the end that is wanted lies on the other side of the step.
    inside = min(max(area, _STEP), 1.0 - _STEP)
    low = 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, inside, xtol=1e-12))
    high = 1.0 if excess(1.0) <= 0.0 else float(brentq(excess, inside, 1.0, xtol=1e-12))
    return low, high


def _spread(theta: float, n_source: int, n_target: int) -> float:
    """Return the standard deviation of the estimated area when the true one is θ."""
    others = (n_source + n_target) / 2.0 - 1.0
    inner = 1.0 + others * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
    return math.sqrt(theta * (1.0 - theta) * inner / (n_source * n_target))
