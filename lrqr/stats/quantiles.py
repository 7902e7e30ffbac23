"""Exact conformal ranks and weighted quantiles with mass at infinity.

Order statistics are indexed, never interpolated: ``np.quantile`` counts from ``(n-1)·level`` and would
give an invalid threshold. Ties and levels are compared with a tolerance that absorbs the rounding of
``1-α`` and of sums of weights but nothing larger. Source: docs/methods.md; Tibshirani, Barber, Candès,
Ramdas (2019), section 2.
"""

import math

import numpy as np

from lrqr.arrays import FloatArray

_RANK_TOLERANCE = 1e-9
_WEIGHT_TOLERANCE = 1e-12


def tolerant_ceil(value: float) -> int:
    """Return the smallest integer that is at least ``value``, up to a relative error of 1e-9.

    Examples
    --------
    >>> tolerant_ceil(9.000000000000002), tolerant_ceil(9.1)
    (9, 10)
    """
    nearest = round(value)
    if abs(value - nearest) <= _RANK_TOLERANCE * max(1.0, abs(value)):
        return nearest
    return math.ceil(value)


def conformal_rank(n: int, level: float, unit: float = 1.0) -> int:
    """Return k = ⌈(n+1)·level⌉, the rank of the conformal threshold among n scores.

    It may exceed n (threshold +inf) or be at most 0 (threshold -inf). Where a new row stands for ``unit``
    rows, since rows come in groups, k = ⌈(n+unit)·level⌉.

    Examples
    --------
    >>> conformal_rank(9, 0.9), conformal_rank(8, 0.9), conformal_rank(99, 0.9)
    (9, 9, 90)
    """
    return tolerant_ceil((n + unit) * level)


def rows_needed(level: float) -> int:
    """Return the smallest n whose conformal threshold at ``level`` is finite: n >= level / (1 - level).

    Examples
    --------
    >>> rows_needed(0.9), rows_needed(0.95)
    (9, 19)
    """
    return tolerant_ceil(level / (1.0 - level))


def order_statistic(scores: FloatArray, rank: int) -> float:
    """Return the ``rank``-th smallest score (from 1); +inf above the last, -inf below the first."""
    if rank > scores.shape[0]:
        return math.inf
    if rank <= 0:
        return -math.inf
    return float(np.partition(scores, rank - 1)[rank - 1])


def conformal_quantile(scores: FloatArray, level: float, unit: float = 1.0) -> float:
    """Return the split conformal threshold: the ⌈(n+1)·level⌉-th smallest score.

    Parameters
    ----------
    scores : (n,) array
        Calibration scores, in any order.
    level : float
        The wanted coverage, 1-α.
    unit : float
        Rows that a new row stands for; see `lrqr.stats.folds.group_size`.

    Returns
    -------
    float
        In score units; +inf when n is too small for the level.

    Examples
    --------
    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9)
    9.0
    >>> conformal_quantile(np.arange(1.0, 9.0), 0.9)
    inf
    """
    return order_statistic(scores, conformal_rank(scores.shape[0], level, unit))


def weighted_quantile(
    scores: FloatArray, weights: FloatArray, test_weights: FloatArray, level: float
) -> FloatArray:
    """Return the weighted conformal threshold of each test row.

    With w_i the weight of the i-th score and w* that of the test row, which sits at +inf::

        q(w*) = inf{ q : Σ_{S_i <= q} w_i >= level · (Σ_i w_i + w*) }

    One sort and one cumulative sum serve all rows, so the cost is O((n+m) log n).

    Parameters
    ----------
    scores, weights : (n,) arrays
        Calibration scores and their non-negative, finite weights, on any common scale.
    test_weights : (m,) array
        The weight of each test row on the same scale.
    level : float
        The wanted coverage, 1-α.

    Returns
    -------
    (m,) array
        In score units; +inf where no finite threshold qualifies, and wherever all weights vanish.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1, 4, 2]), np.array([3.0, 1, 4, 2]), np.array([2.0, 9.0]), 0.5)
    array([3., 4.])
    """
    # Ties are ordered by weight, so that the sums do not depend on the order of the rows by one bit.
    order = np.lexsort((weights, scores))
    ladder = np.append(scores[order], math.inf)
    # Sums of raw weights: dividing first breaks ties (ten weights of 0.1 sum to less than 1).
    cumulated = np.cumsum(weights[order])
    total = (cumulated[-1] if cumulated.size else 0.0) + np.asarray(test_weights, dtype=np.float64)
    # The rounding of a sum grows with its length; 1/n, what one row is worth, stays far above it.
    tolerance = max(_WEIGHT_TOLERANCE, cumulated.size * np.finfo(np.float64).eps)
    wanted = (level - tolerance) * total
    thresholds: FloatArray = ladder[np.searchsorted(cumulated, wanted, side="left")]
    thresholds[total <= 0.0] = math.inf
    return thresholds
