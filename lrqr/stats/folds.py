"""The one splitter: whatever divides rows deals them here, and what belongs together stays on one side.

Copies of a row on both sides of a split let a model see the rows that it is judged on: scores come out too
small, and the intervals with them. So do several rows of one patient, device or place, which the user names
as clusters. Rows that are alike because there are few values to take are no copies: new rows are like them
too, and to keep them apart would hide from a model what it will meet.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lrqr.arrays import FloatArray, IntArray
from lrqr.errors import DataError

# Rows of equal features are copies if the other sample has fewer than this share of the rows like them that
# it would have by chance; equal rows are, if a column takes more values than this share of the distinct rows.
_SELDOM = 0.5
_LOOKED_AT = 1_000  # rows, to see which columns tell most rows apart
_HALF = 0.5  # of the rows: a group with more cannot stay whole in a split


def canonical_order(*columns: FloatArray) -> IntArray:
    """Return an order of the rows that depends on their contents only (first array first).

    Folds are dealt out and models fitted in this order, so that shuffled rows give the same model.
    """
    keys = [key for block in columns for key in np.atleast_2d(block.T) if key.size]
    if not keys:  # rows without a column are all alike
        return np.arange(len(columns[0]), dtype=np.int64)
    order = np.arange(len(keys[0]), dtype=np.int64)
    unsettled, count = order.copy(), 1
    while len(unsettled):  # by the first columns; rows that tie there by more of them
        rows = np.sort(order[unsettled])
        first = [key[rows] for key in keys[:count]]
        by = np.lexsort(first[::-1])
        order[unsettled] = rows[by]
        same = np.all([key[by][1:] == key[by][:-1] for key in first], axis=0)
        tied = np.append(False, same) | np.append(same, False)
        unsettled = unsettled[tied] if count < len(keys) else unsettled[:0]
        count *= 4
    return order


def alike(*columns: FloatArray) -> IntArray:
    """Return a number for each row (n,), that of the first row that is equal to it in all columns."""
    numbers = np.arange(len(columns[0]), dtype=np.int64)
    blocks = [np.atleast_2d(np.asarray(block, dtype=np.float64).T) for block in columns]
    keys = [key for block in blocks for key in block if key.size]
    keys.sort(key=lambda key: -len(np.unique(key[:_LOOKED_AT])))  # what tells most rows apart comes first
    tied, group = (numbers, np.zeros_like(numbers)) if keys else (numbers[:0], numbers[:0])
    for key in keys:  # among the rows that are equal so far; the order within a group stays
        bits = (key[tied] + 0.0).view(np.int64)
        order = np.lexsort((bits, group))
        tied, bits, group = tied[order], bits[order], group[order]
        group = _runs(group, bits)
        several = np.bincount(group)[group] > 1
        tied, group = tied[several], group[several]
        if not tied.size:
            break
    numbers = numbers.copy()
    if tied.size:
        group = _runs(group)
        numbers[tied] = tied[np.searchsorted(group, np.arange(group[-1] + 1))][group]
    return numbers


def _runs(*keys: IntArray) -> IntArray:
    """Return the number of each run of equal values, for keys (n,) in order, n >= 1."""
    starts = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.append(0, np.cumsum(starts))


def copies(X: FloatArray, outcome: Any = None, *, other: FloatArray | None = None) -> IntArray:
    """Return a number for each row (n,), the same for rows that are copies of each other.

    Parameters
    ----------
    X : (n, d) array
        Features, and predictions if there are any.
    outcome : (n,) array, optional
        Outcomes or scores.
    other : (m, d) array, optional
        The same columns of the sample that these rows are compared with (target for source). Rows with equal
        features are copies, whatever their outcomes, if it has them less than half as often as it would if
        both were drawn alike.

    Returns
    -------
    (n,) array
        Rows that are equal in everything are copies too if the outcome (without ``other``: any column) takes
        more values than half of the distinct rows: by chance they would then differ there.
    """
    found = copies_by_values(X, outcome, features_tell=other is None)
    if other is None or not min(len(other), *X.shape):
        return found
    n = len(X)
    both = alike(np.concatenate([X, other]))
    twins, elsewhere = both[:n], np.isin(both[:n], both[n:])
    others = np.bincount(twins)[twins] - 1.0
    by_chance = -np.expm1(-len(other) * others / max(n - 1, 1)).mean()
    return _joined(found, twins) if elsewhere.mean() < _SELDOM * by_chance else found


def copies_by_values(X: FloatArray, outcome: Any = None, *, features_tell: bool = True) -> IntArray:
    """Give rows alike in everything one number if a column tells most others apart, else each its own."""
    apart = np.arange(len(X), dtype=np.int64)
    known = [X] if outcome is None else [X, np.asarray(outcome, dtype=np.float64)]
    telling = np.column_stack(known if features_tell else [X[:, :0], *known[1:]])
    if not telling.shape[1] or np.column_stack(known).shape[1] < 2:
        return apart
    equal = alike(*known)
    first = np.flatnonzero(equal == apart)
    if len(first) == len(X):
        return apart
    tells = any(len(np.unique(column)) > _SELDOM * len(first) for column in telling[first].T)
    return equal if tells else apart


def together(
    X: FloatArray, outcome: Any = None, *, other: FloatArray | None = None, clusters: Any = None
) -> IntArray | None:
    """Return which rows a split keeps on one side: `copies` of each other, and rows of one cluster.

    Parameters
    ----------
    X, outcome, other
        See `copies`.
    clusters : (n,) array, optional
        Names or numbers of clusters.

    Returns
    -------
    (n,) array of int, or None
        The number of the group of each row, in the order in which they first occur; None if each row stands
        alone. A group of more than half of the rows is dealt row by row: no split could keep it whole.
    """
    groups = copies(X, outcome, other=other)
    if clusters is not None:
        groups = _joined(groups, np.unique(np.asarray(clusters), return_inverse=True)[1].ravel())
    sizes = np.bincount(groups)[groups]
    if (sizes <= 1).all():
        return None
    groups = np.where(sizes > _HALF * len(groups), len(groups) + np.arange(len(groups)), groups)
    numbers, first = _numbered(groups)
    return None if len(first) == len(groups) else numbers


def group_size(groups: Any, weights: FloatArray) -> float:
    """Return how many calibration rows come with a row: the mean size of its group, weighted by (n,) weights.

    The row to be predicted belongs to a group too, of which no row was seen. A quantile that leaves room for
    it leaves room for so many rows: with all rows k times, that of the distinct rows. Without groups it is 1.
    Source: the hierarchical conformal prediction of Lee, Barber and Willett (2023), with the mean for a size
    that is not known.

    Examples
    --------
    >>> group_size(np.array([0, 0, 0, 1]), np.ones(4))
    2.5
    """
    if groups is None or not weights.any():
        return 1.0
    labels = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    # sorted: the same sums, to the last bit, however the rows are shuffled
    return float(np.sort(np.bincount(labels)[labels] * weights).sum() / np.sort(weights).sum())


def as_groups(values: Any, length: int) -> NDArray[Any]:
    """Return names of clusters, of any type, as an array (n,).

    Raises
    ------
    DataError
        If there is not one for each row.
    """
    groups = np.asarray(values)
    if groups.shape != (length,):
        raise DataError(f"groups must have shape ({length},), one name per row, got {groups.shape}")
    return groups


def fold_rows(
    columns: Sequence[FloatArray], folds: int, random_state: int | None, groups: IntArray | None = None
) -> IntArray:
    """Return the fold (n,) of each row by the contents of ``columns``, so that shuffled rows keep theirs."""
    order = canonical_order(*columns)
    count = len(order) if groups is None else len(np.unique(groups))
    dealt = np.empty(len(order), dtype=np.int64)
    dealt[order] = deal_folds(
        len(order), min(folds, count), random_state, None if groups is None else groups[order]
    )
    return dealt


def deal_folds(
    n: int, folds: int, random_state: int | None, groups: IntArray | None = None, classes: Any = None
) -> IntArray:
    """Return the fold of each of n rows, sizes as equal as can be; the same n gives the same folds.

    Rows of one of the ``groups`` (as `together` returns them) share a fold; then every one of the ``classes``
    (n,) is spread over the folds as evenly as its groups allow.
    """
    rng = np.random.default_rng(random_state)
    if groups is None:
        return rng.permutation(n) % folds
    return deal(groups, np.full(folds, 1.0 / folds), rng, classes)


def deal(groups: IntArray, shares: FloatArray, rng: np.random.Generator, classes: Any = None) -> IntArray:
    """Return the part of each row (n,), about ``shares`` (k,) of the rows in each, with no group divided.

    The largest groups come first, each to the part that has the least of its share of the group's class (that
    of its first row). Rows that stand alone fill up.
    """
    group_of, first = _numbered(groups)
    sizes = np.bincount(group_of)
    labels = np.zeros(len(groups), dtype=np.int64)
    if classes is not None:
        labels = np.unique(np.asarray(classes), return_inverse=True)[1].ravel()
    strata = labels[first]
    part = np.empty(len(sizes), dtype=np.int64)
    filled = np.zeros((int(strata.max()) + 1, len(shares)))
    order = rng.permutation(len(sizes))
    for group in (order := order[np.argsort(-sizes[order], kind="stable")])[sizes[order] > 1]:
        full = filled.sum(axis=0) + 0.5 * sizes[group] > shares * len(groups)
        part[group] = np.lexsort((full, filled[strata[group]] / shares))[0]
        filled[strata[group], part[group]] += sizes[group]
    for stratum, own in enumerate(filled):
        single = order[(sizes[order] == 1) & (strata[order] == stratum)]
        wanted = np.maximum(shares * (own.sum() + len(single)) - own, 0.0)
        if len(single):
            edges = np.round(np.cumsum(wanted) / wanted.sum() * len(single))
            part[single] = np.searchsorted(edges, np.arange(len(single)), side="right")
    return part[group_of]


def _numbered(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of each row's group, in order of first occurrence, and the first row of each."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64), np.sort(first)


def _joined(one: IntArray, other: IntArray) -> IntArray:
    """Return the finest grouping (n,) in which rows that either grouping joins are joined."""
    n = len(one)
    edges = coo_array((np.ones(n), (one, int(one.max(initial=0)) + 1 + other)))
    size = max(edges.shape)
    labels = connected_components(coo_array((edges.data, edges.coords), shape=(size, size)), directed=False)[
        1
    ]
    return np.asarray(labels[one], dtype=np.int64)
