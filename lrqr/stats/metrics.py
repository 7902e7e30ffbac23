"""Coverage with exact intervals, and sizes of prediction sets: overall, by group, by size, in the worst slab.

Functions that take an outcome and a set take both by keyword only, because swapped arguments would give a
number that looks plausible.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv
from scipy.stats import t as student

from lrqr.arrays import BoolArray, FloatArray, IntArray, as_matrix, as_vector
from lrqr.errors import DataError, UsageError

Row = dict[str, Any]

SMALL_GROUP = 30
"""Groups with fewer rows are marked as small, since their interval is wide."""

_QUANTILES = (0.05, 0.25, 0.75, 0.95)
_SLAB_EDGES = 50  # slabs begin and end at multiples of 1/50 of the rows
_SLAB_ROWS = 5000  # more rows do not make the search for a bad slab better, only slower


def coverage_interval(covered_count: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a proportion (Clopper & Pearson 1934).

    Parameters
    ----------
    covered_count : int or float
        Number of covered rows, 0..n; a broken number where rows are worth fewer independent ones.
    n : int or float
        Number of rows; with none the interval is (0, 1).
    confidence : float

    Returns
    -------
    low, high : float
    """
    if not 0 <= covered_count <= n:
        raise UsageError(f"covered_count must lie in 0..n, got {covered_count} of {n}; are the two swapped?")
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    tail = (1 - confidence) / 2
    low = 0.0 if covered_count == 0 else float(betaincinv(covered_count, n - covered_count + 1, tail))
    high = 1.0 if covered_count == n else float(betaincinv(covered_count + 1, n - covered_count, 1 - tail))
    return low, high


def clustered_interval(
    covered: BoolArray, clusters: IntArray, confidence: float = 0.95
) -> tuple[float, float]:
    """Two-sided interval of a proportion of rows that come in clusters.

    The exact interval at the number of independent rows that are worth as much: n over the design effect,
    which is the variance of the share between clusters over that of independent rows and at least 1, and less
    still for the clusters that it is estimated from. Source: Korn and Graubard, Survey Methodology 24 (1998).

    Parameters
    ----------
    covered : (n,) array of bool
    clusters : (n,) array
    confidence : float
    """
    return coverage_interval(*_counts(covered, clusters, confidence), confidence)


def _counts(covered: BoolArray, clusters: IntArray | None, confidence: float) -> tuple[float, float]:
    """Return how many rows are covered and how many there are, of independent ones that are worth as much."""
    n, hits = len(covered), int(covered.sum())
    if clusters is None or not n:
        return hits, n
    share = hits / n
    numbers = np.unique(clusters, return_inverse=True)[1]
    k = int(numbers.max()) + 1
    if k < 2:
        return 0.0, 0.0
    sums = np.bincount(numbers, weights=covered - share)
    between = k / (k - 1.0) * float(np.square(sums).sum()) / n**2
    # where all rows or none are covered nothing varies: each cluster then counts as one row
    worth = min(n, share * (1.0 - share) / between) if between > 0.0 else float(k)
    tail = (1.0 - confidence) / 2.0
    worth *= (float(student.ppf(tail, max(n - 1, 1))) / float(student.ppf(tail, k - 1))) ** 2
    return share * worth, worth


def verdict(low: float, high: float, nominal: float) -> str:
    """``"below"``, ``"compatible"`` or ``"above"``: where an interval of the coverage lies to the promise."""
    if high < nominal:
        return "below"
    return "above" if low > nominal else "compatible"


def holm(counts: Sequence[tuple[float, float]], nominal: float, confidence: float = 0.95) -> list[Row]:
    """Test several coverages against one promise by the step-down procedure of Holm (1979).

    The p-value of a coverage is that of the exact two-sided binomial test (twice the smaller tail), which is
    dual to the Clopper-Pearson interval. The interval is Clopper-Pearson at the level at which Holm decides:
    ``1 - (1 - confidence) / (m - rank)`` for the rejected ones among m, the level of the first one kept
    for all others. So interval, verdict and adjusted p-value agree, and with probability ``confidence`` none
    that keeps the promise is called below or above. (The intervals are not meant to hold all at once.)

    Parameters
    ----------
    counts : list of (covered, n)
        Broken numbers where rows are worth fewer independent ones.
    nominal, confidence : float

    Returns
    -------
    list of dict
        ``low``, ``high``, ``verdict``, ``p_value``, ``p_adjusted`` of each, in the order given.
    """
    p = np.array([min(1.0, 2.0 * min(_tails(k, n, nominal))) for k, n in counts])
    order = np.argsort(p, kind="stable")
    remaining = len(counts) - np.arange(len(counts))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * remaining), 1.0)
    kept = np.flatnonzero(p[order] * remaining >= 1 - confidence)
    first_kept = int(kept[0]) if kept.size else len(counts)
    rows: list[Row] = [{} for _ in counts]
    for rank, k in enumerate(order):
        level = 1 - (1 - confidence) / (len(counts) - min(rank, first_kept))
        low, high = coverage_interval(counts[k][0], counts[k][1], level)
        rows[k] = {"low": low, "high": high, "verdict": verdict(low, high, nominal)}
        rows[k] |= {"p_value": float(p[k]), "p_adjusted": float(adjusted[k])}
    return rows


def _tails(k: float, n: float, share: float) -> tuple[float, float]:
    """Return the chances of at most and of at least k of n successes, as the beta law has them for any k."""
    low = 1.0 if k >= n else float(betainc(n - k, k + 1.0, 1.0 - share))
    return low, 1.0 if k <= 0.0 else float(betainc(k, n - k + 1.0, share))


def coverage_summary(
    *, covered: BoolArray, nominal: float, confidence: float = 0.95, clusters: IntArray | None = None
) -> Row:
    """Coverage of a set of rows; with ``clusters`` (n,), rows of one of which are not independent.

    Returns
    -------
    dict
        ``value`` (None without rows), ``low``, ``high``, ``verdict``, ``n``.
    """
    hits = np.asarray(covered, dtype=np.bool_)
    n = hits.shape[0]
    low, high = coverage_interval(*_counts(hits, clusters, confidence), confidence)
    value = int(hits.sum()) / n if n else None
    return {"value": value, "low": low, "high": high, "verdict": verdict(low, high, nominal), "n": n}


def region_size(*, region: FloatArray | BoolArray) -> FloatArray:
    """Length of each interval, region (n, 2), or number of classes of each set, region (n, K) booleans.

    Returns
    -------
    array of shape (n,)
        In units of the outcome or in classes; ``inf`` where unbounded, 0 where empty.
    """
    if region.dtype == np.bool_:
        return np.asarray(np.count_nonzero(region, axis=1), dtype=np.float64)
    bounds = _as_bounds(region)
    empty = bounds[:, 0] > bounds[:, 1]
    sizes = np.zeros(bounds.shape[0])
    sizes[~empty] = bounds[~empty, 1] - bounds[~empty, 0]
    return sizes


def size_summary(
    *,
    region: FloatArray | BoolArray,
    sizes: FloatArray | None = None,
    whole: tuple[float, float] = (-np.inf, np.inf),
) -> Row:
    """How large the answers are.

    Parameters
    ----------
    region : float array of shape (n, 2) or bool array of shape (n, K)
        As returned by a score's ``region``.
    sizes : array of shape (n,), optional
        How large each answer is, if not as `region_size` measures it.
    whole : (float, float)
        The lowest and the highest possible outcome.

    Returns
    -------
    dict
        ``mean`` over finite sizes (``inf`` if there are none), ``median`` and ``quantiles`` over all rows
        (order statistics, may be ``inf``), and the shares ``infinite``, ``empty``, ``full``
        (all classes; for intervals all possible outcomes) and ``singleton`` (one class; for intervals one
        point).
    """
    sizes = region_size(region=region) if sizes is None else sizes
    if region.dtype == np.bool_:
        empty, full, single = sizes == 0, sizes == region.shape[1], sizes == 1
    else:
        bounds = _as_bounds(region)
        empty = bounds[:, 0] > bounds[:, 1]
        full = (bounds[:, 0] == whole[0]) & (bounds[:, 1] == whole[1])
        single = bounds[:, 0] == bounds[:, 1]
    shares = {"empty": empty, "full": full, "singleton": single}
    return distribution(values=sizes) | {name: _share(rows) for name, rows in shares.items()}


def distribution(*, values: FloatArray) -> Row:
    """Mean over finite values (infinite without any), median, quantiles, share of infinite ones."""
    array = as_vector(values, "values", allow_infinite=True)
    if not array.shape[0]:
        return {"mean": None, "median": None, "quantiles": {}, "infinite": None}
    finite = array[np.isfinite(array)]
    quantiles = np.quantile(array, _QUANTILES, method="inverted_cdf")
    middle = float(np.quantile(array, 0.5, method="inverted_cdf"))  # a mean of inf and -inf would be NaN
    return {
        "mean": float(finite.mean()) if finite.size else middle,
        "median": float(np.median(array)) if finite.size == array.size else middle,
        "quantiles": {f"{level:g}": float(q) for level, q in zip(_QUANTILES, quantiles, strict=True)},
        "infinite": _share(np.isinf(array)),
    }


def winkler_score(*, y: FloatArray, lower: FloatArray, upper: FloatArray, nominal: float) -> Row:
    """Interval score of Winkler (1972): length plus ``2 / (1 - nominal)`` times the distance missed.

    Returns
    -------
    dict
        ``mean`` over rows with a finite, non-empty interval, in units of the outcome (None without such
        rows), and ``left_out``, the number of other rows: their score would be infinite.
    """
    outcome = as_vector(y, "y")
    bounds = _as_bounds(np.column_stack([lower, upper]))
    if not 0 < nominal < 1:
        raise UsageError(f"nominal must lie strictly between 0 and 1, got {nominal}")
    use = np.isfinite(bounds).all(axis=1) & (bounds[:, 0] <= bounds[:, 1])
    if not use.any():
        return {"mean": None, "left_out": int(use.size)}
    outcome, low, high = outcome[use], bounds[use, 0], bounds[use, 1]
    missed = np.maximum(low - outcome, 0) + np.maximum(outcome - high, 0)
    scores = high - low + 2 / (1 - nominal) * missed
    return {"mean": float(scores.mean()), "left_out": int(np.sum(~use))}


def by_group(
    *,
    covered: BoolArray,
    group: Sequence[Any] | np.ndarray[Any, Any],
    nominal: float,
    sizes: FloatArray | None = None,
    clusters: IntArray | None = None,
    confidence: float = 0.95,
) -> list[Row]:
    """Coverage of each group, tested together by the step-down procedure of Holm (1979).

    What the intervals mean is said in `holm`; ``clusters`` (n,) as in `coverage_summary`.

    Returns
    -------
    list of dict
        One per group in the order of its names: ``group``, ``n``, ``coverage``, ``low``, ``high``,
        ``verdict``, ``p_value``, ``p_adjusted``, ``small`` (n < 30), and, if sizes are given, ``size``
        (mean of the finite ones, ``inf`` without any).
    """
    hits = np.asarray(covered, dtype=np.bool_)
    labels, index = _groups(group, hits.shape[0])
    members = [index == k for k in range(len(labels))]
    counts = [
        _counts(hits[rows], None if clusters is None else clusters[rows], confidence) for rows in members
    ]
    decisions = holm(counts, nominal, confidence)
    table = []
    for label, rows, decision in zip(labels, members, decisions, strict=True):
        n = int(rows.sum())
        row = {"group": label, "n": n, "coverage": int(hits[rows].sum()) / n, **decision}
        row["small"] = n < SMALL_GROUP
        if sizes is not None:
            row["size"] = distribution(values=np.asarray(sizes)[rows])["mean"]
        table.append(row)
    return table


def size_stratified(
    *,
    covered: BoolArray,
    sizes: FloatArray,
    nominal: float,
    bins: int = 5,
    clusters: IntArray | None = None,
    confidence: float = 0.95,
) -> list[Row]:
    """Coverage of rows with small and with large answers, bins of about equal count, tested as `by_group`.

    Equal sizes are never split, so there may be fewer bins than asked for.

    Returns
    -------
    list of dict
        Rows of `by_group` in order of size, with ``smallest`` and ``largest`` size instead of ``group``.
    """
    values = as_vector(sizes, "sizes", allow_infinite=True)
    if not values.shape[0]:
        return []
    levels = np.arange(1, bins) / bins
    edges = np.unique(np.quantile(values, levels, method="inverted_cdf"))
    bin_of = np.searchsorted(edges, values, side="left")
    how: dict[str, Any] = {"nominal": nominal, "clusters": clusters, "confidence": confidence}
    table = by_group(covered=covered, group=bin_of, sizes=values, **how)
    for row in table:
        inside = values[bin_of == row.pop("group")]
        row |= {"smallest": float(inside.min()), "largest": float(inside.max())}
    return table


def worst_slab(
    *,
    X: FloatArray,
    covered: BoolArray,
    nominal: float,
    fraction: float = 0.1,
    directions: int = 1000,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Row:
    """Coverage in the slab of feature space that looks worst (Cauchois, Gupta, Duchi 2021), on held-out rows.

    One half of the rows searches random directions v for the slab ``a <= v'x <= b`` that holds at least
    ``fraction`` of them and has the lowest coverage; the other half says what the coverage there is, without
    the bias of the search. Without enough rows to search (50) nothing is found: n = 0.

    Parameters
    ----------
    X : array of shape (n, d)
        Features; each is standardized first.
    covered : bool array of shape (n,)
    nominal, confidence : float
    fraction : float
        Smallest share of rows in a slab, at least 1/50.
    directions : int
        Number of random directions.
    random_state : int

    Returns
    -------
    dict
        As `coverage_summary`, of the held-out rows in the slab.
    """
    features = as_matrix(X, "X")
    hits = np.asarray(covered, dtype=np.bool_)
    if hits.shape != (features.shape[0],):
        raise DataError(f"covered has shape {hits.shape}, expected ({features.shape[0]},)")
    rng = np.random.default_rng(random_state)
    spread = features.std(axis=0)
    center, scale = features.mean(axis=0), np.where(spread > 0, spread, 1.0)
    order = rng.permutation(features.shape[0])
    search, held_out = order[: order.size // 2][:_SLAB_ROWS], order[order.size // 2 :]
    if search.size < _SLAB_EDGES:
        return coverage_summary(covered=hits[:0], nominal=nominal, confidence=confidence)
    worst, inside = np.inf, np.zeros(held_out.size, dtype=np.bool_)
    searched, judged = ((features[rows] - center) / scale for rows in (search, held_out))
    for direction in rng.normal(size=(directions, features.shape[1])):
        value, low, high = _lowest_slab(searched @ direction, hits[search], fraction)
        if value < worst:
            projected = judged @ direction
            worst, inside = value, (projected >= low) & (projected <= high)
    return coverage_summary(covered=hits[held_out][inside], nominal=nominal, confidence=confidence)


def importance_weighted_coverage(*, covered: BoolArray, weights: FloatArray) -> Row:
    """Coverage of *source* rows weighted by the likelihood ratio: what to look at without target labels.

    It estimates the target coverage, but only as well as the weights estimate the ratio; reports therefore do
    not call it coverage.

    Returns
    -------
    dict
        ``value`` = Σ w c / Σ w, and its ``standard_error`` by the delta method,
        sqrt(Σ w² (c - value)²) / Σ w. Both None if all weights are zero.
    """
    hits = np.asarray(covered, dtype=np.float64)
    w = as_vector(weights, "weights", length=hits.shape[0])
    if np.any(w < 0):
        raise DataError("weights must not be negative")
    total = w.sum()
    if total <= 0:
        return {"value": None, "standard_error": None}
    value = w @ hits / total
    error = np.sqrt(np.sum((w * (hits - value)) ** 2)) / total
    return {"value": float(value), "standard_error": float(error)}


def _lowest_slab(position: FloatArray, hits: BoolArray, fraction: float) -> tuple[float, float, float]:
    """Lowest coverage of a slab on a grid of order statistics, and its two ends."""
    order = np.argsort(position, kind="stable")
    ranked = position[order]
    edges = np.linspace(0, ranked.size, _SLAB_EDGES + 1).round().astype(np.int64)
    running = np.concatenate([[0], np.cumsum(hits[order])])
    count = edges[None, :] - edges[:, None]
    inside = running[edges][None, :] - running[edges][:, None]
    wide = count >= max(1.0, fraction * ranked.size)
    share = np.where(wide, inside / np.maximum(count, 1), np.inf)
    start, stop = np.unravel_index(np.argmin(share), share.shape)
    return float(share[start, stop]), float(ranked[edges[start]]), float(ranked[edges[stop] - 1])


def _groups(group: Sequence[Any] | np.ndarray[Any, Any], n: int) -> tuple[list[Any], IntArray]:
    values = np.asarray(group)
    if values.shape != (n,):
        raise DataError(f"group has shape {values.shape}, expected ({n},)")
    try:
        labels, index = np.unique(values, return_inverse=True)
    except TypeError:  # texts and numbers mixed
        labels, index = np.unique(values.astype(str), return_inverse=True)
    return labels.tolist(), index.astype(np.int64)


def _share(rows: BoolArray) -> float | None:
    return float(rows.mean()) if rows.size else None


def _as_bounds(array: np.ndarray[Any, Any]) -> FloatArray:
    bounds = np.asarray(array, dtype=np.float64)
    if bounds.ndim != 2 or bounds.shape[1] != 2:
        raise DataError(f"intervals must have shape (n, 2), got {bounds.shape}")
    if np.isnan(bounds).any():
        raise DataError("intervals hold NaN; an empty one is written (+inf, -inf)")
    return bounds
