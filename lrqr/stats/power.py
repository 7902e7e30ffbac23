"""How much labels can tell: the power of the exact binomial test of a coverage, and the spread they leave.

A test sees a drop when the 95 % Clopper–Pearson interval lies below the level, which is when `lrqr evaluate`
says "below".
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from lrqr.arrays import FloatArray, IntArray

SIZE = 0.05
_STEP = 64


def power(n: int | IntArray, level: float, truth: float) -> FloatArray:
    """Return the chance that n rows show that their coverage ``truth`` is below ``level``."""
    # the largest count whose lower tail is at most half the size
    critical = binom.ppf(SIZE / 2.0, n, level)
    critical = np.where(binom.cdf(critical, n, level) <= SIZE / 2.0, critical, critical - 1.0)
    return np.asarray(binom.cdf(critical, n, truth), dtype=np.float64)


def rows_to_tell(level: float, truth: float, wanted: float = 0.8) -> int:
    """Return the smallest n from which on so many rows tell ``truth`` from ``level`` with this power.

    The power of an exact test goes up and down with n by single counts, so the last n below it decides.

    Examples
    --------
    >>> rows_to_tell(0.9, 0.85), rows_to_tell(0.9, 0.8)
    (362, 111)
    """
    # (1.96 + 0.84)² = 7.9 standard errors squared would do for normal counts
    rough = 16.0 * (truth * (1.0 - truth) + level * (1.0 - level)) / (level - truth) ** 2
    n = np.arange(1, int(rough) + _STEP)
    short = np.flatnonzero(power(n, level, truth) < wanted)
    return int(n[short[-1]] + 1) if short.size else 1


def spread(n: float, level: float) -> float:
    """Return the standard deviation over draws of the coverage that n exchangeable rows calibrate to.

    That coverage has the law Beta(k, n + 1 - k) with k = (n + 1)·level (Vovk 2012).

    Examples
    --------
    >>> round(spread(100, 0.9), 4)
    0.0297
    """
    return math.sqrt(level * (1.0 - level) / (n + 2.0))


def rows_to_halve(n: float) -> int:
    """Return the smallest number of rows whose `spread` is at most half that of n, at any level.

    Examples
    --------
    >>> rows_to_halve(100)
    406
    """
    return math.ceil(4.0 * (n + 2.0) - 2.0)
