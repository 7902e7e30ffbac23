"""What the scores share: `score` and `region` from one formula each, and the exact ends of an interval.

A score of numbers states the two edges from which distance is measured (`interval_score`); a score of classes
states the scores of all classes (`class_score`). A plug-in of `lrqr.scores` must not import its neighbors, so
their common parts stand here.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from lrqr.arrays import BoolArray, FloatArray, IntArray, as_matrix, as_vector
from lrqr.errors import DataError

Edges: TypeAlias = tuple[FloatArray, FloatArray, FloatArray | None]
"""Lower and upper edge (n,) in units of the outcome, and a positive spread (n,) or None for 1."""

_MIRROR = np.int64(np.iinfo(np.int64).min)
_LAST = np.int64(np.array(np.inf).view(np.int64))
_STEPS_TRIED = 2  # where nothing cancels, the rounded guess is at most two floats off
_BISECTIONS = 64  # float64 has fewer than 2**64 values


def interval_score(
    edges: Callable[[FloatArray], Edges], side: str = "both"
) -> tuple[Callable[..., FloatArray], Callable[..., FloatArray]]:
    """Return `score` and `region` of ``max(lower - y, y - upper) / spread``, or of one of the two distances.

    Parameters
    ----------
    edges : callable
        Checks predictions (n, k) and turns them into the edges and spreads of the rows.
    side : {"both", "upper", "lower"}
        Which distance counts: beyond either edge, above the upper one, or below the lower one.
    """

    def score(
        prediction: FloatArray, outcome: FloatArray, *, uniform: FloatArray | None = None
    ) -> FloatArray:
        """Return the scores (n,) of the outcomes (n,); ``uniform`` changes nothing."""
        del uniform
        lower, upper, spread = edges(prediction)
        y = as_vector(outcome, "outcome", length=lower.shape[0])
        below, above = lower - y, y - upper
        distance: FloatArray = {"both": np.maximum(below, above), "upper": above, "lower": below}[side]
        return distance if spread is None else distance / spread

    def region(
        prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None
    ) -> FloatArray:
        """Return the closed bounds (n, 2) of all y that score at most the threshold (n,).

        Empty bounds are ``(+inf, -inf)``.
        """
        del uniform
        lower, upper, spread = edges(prediction)
        return interval(lower, upper, as_thresholds(threshold, lower.shape[0]), spread, side)

    return score, region


def class_score(
    all_classes: Callable[[FloatArray, FloatArray | None], FloatArray],
) -> tuple[Callable[..., FloatArray], Callable[..., BoolArray]]:
    """Return `score` and `region` of a score of classes.

    Parameters
    ----------
    all_classes : callable
        Turns class probabilities (n, K) and the numbers that randomize, (n,) or None, into the scores of all
        classes (n, K).
    """

    def score(prediction: FloatArray, outcome: IntArray, *, uniform: FloatArray | None = None) -> FloatArray:
        """Return the scores (n,) of class indices 0..K-1, shape (n,), under probabilities (n, K).

        ``uniform`` (n,) are independent uniform numbers in [0, 1] for a score that is randomized; pass those
        of a row again to `region`.
        """
        return of_class(all_classes(as_probability(prediction), uniform), outcome)

    def region(
        prediction: FloatArray, threshold: FloatArray, *, uniform: FloatArray | None = None
    ) -> BoolArray:
        """Return which classes (n, K) score at most the row's threshold (n,)."""
        scores = all_classes(as_probability(prediction), uniform)
        return scores <= as_thresholds(threshold, scores.shape[0])[:, None]

    return score, region


def interval(
    lower: FloatArray,
    upper: FloatArray,
    threshold: FloatArray,
    spread: FloatArray | None = None,
    side: str = "both",
) -> FloatArray:
    """All y with ``max(lower - y, y - upper) / spread <= threshold``, as evaluated in float64.

    ``upper + spread * threshold`` is rounded, so a row whose score equals the threshold may fall outside it
    by one unit in the last place. Here the ends are the outermost float64 numbers whose *computed* score
    does not exceed the threshold, so that the law of scores holds for every y.

    Parameters
    ----------
    lower, upper : array of shape (n,)
        Lower and upper edge in units of the outcome; ``lower > upper`` is allowed (crossing quantiles).
    threshold : array of shape (n,)
        Thresholds in score units, may be infinite.
    spread : array of shape (n,), optional
        Positive scale of each row, in units of the outcome; 1 if not given.
    side : {"both", "upper", "lower"}
        The bounds wanted: of one alone the other is infinite.

    Returns
    -------
    array of shape (n, 2)
        Closed bounds; an empty interval is ``(+inf, -inf)``.
    """
    scale = np.ones_like(threshold) if spread is None else spread

    def below(y: FloatArray, rows: IntArray) -> FloatArray:
        return (y - upper[rows]) / scale[rows]

    def above(y: FloatArray, rows: IntArray) -> FloatArray:
        return (lower[rows] + y) / scale[rows]

    with np.errstate(over="ignore", under="ignore"):
        reach = scale * threshold
        bounds = np.column_stack(
            [-_largest(above, threshold, reach - lower), _largest(below, threshold, reach + upper)]
        )
    bounds += 0.0  # turns -0.0 into 0.0
    if side != "both":
        bounds[:, 0 if side == "upper" else 1] = -np.inf if side == "upper" else np.inf
    nothing = (bounds[:, 0] > bounds[:, 1]) | ((bounds[:, 0] == bounds[:, 1]) & np.isinf(bounds[:, 0]))
    bounds[nothing] = np.inf, -np.inf
    return bounds


def _largest(
    excess: Callable[[FloatArray, IntArray], FloatArray], threshold: FloatArray, guess: FloatArray
) -> FloatArray:
    """Row by row the largest float64 y with ``excess(y, row) <= threshold``; excess must not fall in y."""
    every = np.arange(threshold.shape[0])
    result = np.full_like(guess, -np.inf)
    for step in range(-_STEPS_TRIED, _STEPS_TRIED + 1):
        candidate = _from_ordinal(np.clip(_ordinal(guess) + step, -_LAST, _LAST))
        inside = excess(candidate, every) <= threshold
        result = np.where(inside, np.fmax(result, candidate), result)
    one_more = excess(np.nextafter(result, np.inf), every) <= threshold
    unsettled = np.flatnonzero((result == -np.inf) | ((result < np.inf) & one_more))
    if unsettled.size:
        result[unsettled] = _bisect(excess, threshold[unsettled], unsettled)
    return result


def _bisect(
    excess: Callable[[FloatArray, IntArray], FloatArray], threshold: FloatArray, rows: IntArray
) -> FloatArray:
    low = np.full(rows.shape, -_LAST)  # excess(-inf) = -inf: always inside
    high = np.full(rows.shape, _LAST)
    for _ in range(_BISECTIONS):
        middle = low // 2 + high // 2 + (low % 2 + high % 2 + 1) // 2  # rounded up, cannot overflow
        inside = excess(_from_ordinal(middle), rows) <= threshold
        low = np.where(inside, middle, low)
        high = np.where(inside, high, np.maximum(middle - 1, low))
    return _from_ordinal(low)


def _ordinal(values: FloatArray) -> IntArray:
    """Integers in the order of the floats: neighbors differ by one."""
    bits = np.asarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, _MIRROR - bits, bits)


def _from_ordinal(ordinals: IntArray) -> FloatArray:
    return np.where(ordinals < 0, _MIRROR - ordinals, ordinals).astype(np.int64).view(np.float64)


def mass_before(probability: FloatArray) -> tuple[FloatArray, IntArray]:
    """Mass of the classes ranked before each class, and the rank of each class from 0.

    Classes are ranked by falling probability; equal ones by position, so that the order is always the same.

    Parameters
    ----------
    probability : array of shape (n, K)

    Returns
    -------
    before : array of shape (n, K)
        0 for the first class of a row. All classes of probability zero have the same value.
    rank : int array of shape (n, K)
    """
    order = np.argsort(-probability, axis=1, kind="stable")
    ranked = np.take_along_axis(probability, order, axis=1)
    running = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=running[:, 1:])
    before = np.empty_like(running)
    np.put_along_axis(before, order, running, axis=1)
    rank = np.empty(order.shape, dtype=np.int64)
    positions = np.broadcast_to(np.arange(order.shape[1]), order.shape)
    np.put_along_axis(rank, order, positions, axis=1)
    return before, rank


def of_class(scores: FloatArray, outcome: IntArray) -> FloatArray:
    """Pick each row's score of its own class: ``scores[i, outcome[i]]``."""
    n, classes = scores.shape
    index = np.asarray(outcome)
    if index.shape != (n,):
        raise DataError(f"outcome has shape {index.shape}, expected ({n},)")
    if not np.issubdtype(index.dtype, np.integer) and np.any(index != np.floor(index)):
        raise DataError("outcome of a classification score must be class indices 0..K-1, got fractions")
    if np.any((index < 0) | (index >= classes)):
        row = int(np.flatnonzero((index < 0) | (index >= classes))[0])
        raise DataError(f"outcome {index[row]} of row {row} (from 0) is no class index in 0..{classes - 1}")
    return scores[np.arange(n), index.astype(np.int64)]


def as_uniform(uniform: FloatArray | None, n: int) -> FloatArray:
    """Return the numbers that randomize a score as a column (n, 1); zeros where none are given."""
    if uniform is None:
        return np.zeros((n, 1))
    column = as_vector(uniform, "uniform", length=n)[:, None]
    if np.any((column < 0) | (column > 1)):
        raise DataError("uniform must lie in [0, 1]")
    return column


def as_thresholds(threshold: FloatArray, n: int) -> FloatArray:
    """Return ``threshold`` as a vector (n,) without NaN; a scalar counts for every row."""
    values = np.asarray(threshold, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n, values)
    return as_vector(values, "threshold", length=n, allow_infinite=True)


def as_probability(prediction: FloatArray) -> FloatArray:
    """Return class probabilities as a finite matrix (n, K), refused where negative."""
    matrix = as_matrix(prediction, "probabilities")
    if np.any(matrix < 0):
        row = int(np.flatnonzero((matrix < 0).any(axis=1))[0])
        raise DataError(f"probabilities are negative in row {row} (from 0); pass probabilities, not logits")
    return matrix
