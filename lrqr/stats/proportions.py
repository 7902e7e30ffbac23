"""Exact inference on proportions: intervals, verdicts, and many of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from lrqr.errors import UsageError


def coverage_interval(covered_count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a proportion (Clopper & Pearson 1934).

    Parameters
    ----------
    covered_count : int
        Number of covered rows, 0..n.
    n : int
        Number of rows; with none the interval is (0, 1).
    confidence : float

    Returns
    -------
    low, high : float
    """
    from scipy.special import betaincinv

    if not 0 <= covered_count <= n:
        raise UsageError(f"covered_count must lie in 0..n, got {covered_count} of {n}; are the two swapped?")
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    tail = (1 - confidence) / 2
    low = 0.0 if covered_count == 0 else float(betaincinv(covered_count, n - covered_count + 1, tail))
    high = 1.0 if covered_count == n else float(betaincinv(covered_count + 1, n - covered_count, 1 - tail))
    return low, high


def verdict(low: float, high: float, nominal: float) -> str:
    """``"below"``, ``"compatible"`` or ``"above"``: where an interval of the coverage lies to the promise."""
    if high < nominal:
        return "below"
    return "above" if low > nominal else "compatible"


def holm(counts: list[tuple[int, int]], nominal: float, confidence: float = 0.95) -> list[dict[str, Any]]:
    """Test several coverages against one promise by the step-down procedure of Holm (1979).

    The p-value of a coverage is that of the exact two-sided binomial test (twice the smaller tail), which is
    dual to the Clopper-Pearson interval. The interval is Clopper-Pearson at the level at which Holm decides:
    ``1 - (1 - confidence) / (m - rank)`` for the rejected ones among m, the level of the first one kept
    for all others. So interval, verdict and adjusted p-value agree, and with probability ``confidence`` none
    that keeps the promise is called below or above. (The intervals are not meant to hold all at once.)

    Parameters
    ----------
    counts : list of (covered, n)
    nominal, confidence : float

    Returns
    -------
    list of dict
        ``low``, ``high``, ``verdict``, ``p_value``, ``p_adjusted`` of each, in the order given.
    """
    from scipy.special import bdtr, bdtrc

    p = np.array(
        [
            min(1.0, 2 * min(bdtr(k, n, nominal), 1.0 if k == 0 else bdtrc(k - 1, n, nominal)))
            for k, n in counts
        ]
    )
    order = np.argsort(p, kind="stable")
    remaining = len(counts) - np.arange(len(counts))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * remaining), 1.0)
    kept = np.flatnonzero(p[order] * remaining >= 1 - confidence)
    first_kept = int(kept[0]) if kept.size else len(counts)
    rows: list[dict[str, Any]] = [{} for _ in counts]
    for rank, k in enumerate(order):
        level = 1 - (1 - confidence) / (len(counts) - min(rank, first_kept))
        low, high = coverage_interval(counts[k][0], counts[k][1], level)
        rows[k] = {"low": low, "high": high, "verdict": verdict(low, high, nominal)}
        rows[k] |= {"p_value": float(p[k]), "p_adjusted": float(adjusted[k])}
    return rows
