"""Which rows lie where the source has none."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from lrqr.arrays import (
    NONNEGATIVE,
    SHARE,
    BoolArray,
    FloatArray,
    Stored,
    array,
    as_matrix,
    few_threads,
    row_dot,
)

LEVEL = 0.99  # a row is far when fewer than 1 in 100 source rows are as far from the other source rows
_LARGEST_STATE = 100_000  # numbers kept as reference rows: 1,000 rows of 100 features
_MOST_ROWS = 1_000
_CHUNK = 128
_PARTS = 8  # of the reference rows, looked at one after the other
_ROUNDING = 1e-9  # distances tie on a grid of integers; a tie is inside, whatever the last bits say


@dataclass(frozen=True)
class Support(Stored):
    """Where the source has rows; :meth:`outside` flags the rows that lie elsewhere.

    A row is outside when one of these holds:

    * its nearest source row, in features standardized by the source, is farther than ``radius``, the 99 %
      conformal quantile of the same distance among the source rows themselves;
    * it differs from the source in a feature that is constant there (a category never seen, say);
    * it looks clearly more like a target row than any source row does: its score along ``direction``, that
      of a linear domain classifier, is above ``ceiling``. In many dimensions distances hardly tell a
      shift along one direction; this does.

    Attributes
    ----------
    center, scale : (d,) arrays
        Median and interquartile range of the source (mean absolute deviation where that is 0, 1 where the
        source is constant).
    constant : (d,) bool array
        Features that do not vary in the source.
    reference : (m, d) array
        Distinct source rows, standardized; at most 1,000, fewer in many dimensions.
    radius : float
        In standardized units.
    expected : float
        Share of fresh source rows that are farther than ``radius``, on average.
    direction : (d,) array or None
        Coefficients on standardized features.
    ceiling : float
        Largest score of a source row along ``direction``, and a margin; unused without a direction.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "center": array("d"),
        "scale": array("d", within="(0, inf)"),
        "constant": array("d", of=bool),
        "reference": array("m", "d"),
        "radius": NONNEGATIVE,
        "expected": SHARE,
        "direction": array("d") | None,
        "ceiling": float,
    }

    center: FloatArray
    scale: FloatArray
    constant: BoolArray
    reference: FloatArray
    radius: float
    expected: float
    direction: FloatArray | None = None
    ceiling: float = 0.0

    @classmethod
    def of(cls, X_source: Any, *, random_state: int = 0) -> Self:
        """Learn from the source rows, shape (n, d), n >= 1; their order does not matter."""
        rows = as_matrix(X_source, "X_source")
        low, center, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
        constant = np.ptp(rows, axis=0) <= 1e-12 * np.abs(rows).max(axis=0)
        # Not the standard deviation: an outlier enlarges that, and so seems nearer than a fresh one would.
        spread = np.where(high > low, high - low, np.abs(rows - center).mean(axis=0))
        scale = np.where(constant, 1.0, spread)
        distinct = np.unique(rows, axis=0)  # copies would say that every other row is far
        most = min(_MOST_ROWS, max(_LARGEST_STATE // max(rows.shape[1], 1), 100))
        if len(distinct) > most:
            chosen = np.random.default_rng(random_state).choice(len(distinct), most, replace=False)
            distinct = distinct[np.sort(chosen)]
        reference = np.where(constant, 0.0, (distinct - center) / scale)
        count = len(reference)
        own = np.sqrt(_nearest_squared(reference, reference, skip_self=True)) if count > 1 else np.zeros(1)
        rank = min(math.ceil(LEVEL * (count + 1)), count)
        radius = float(np.sort(own)[rank - 1])
        return cls(center, scale, constant, reference, radius, 1.0 - rank / (count + 1))

    def far(self, X: Any) -> BoolArray:
        """Return which rows (n, d) are too far from the source: the first two rules."""
        rows = as_matrix(X, "X", columns=len(self.center))
        never = self.constant
        tolerance = _ROUNDING * (1.0 + np.abs(self.center[never]))
        novel = np.abs(rows[:, never] - self.center[never]) > tolerance
        flags: BoolArray = np.asarray(novel.any(axis=1))
        varying = (rows - self.center) / self.scale
        varying[:, never] = 0.0
        left = np.flatnonzero(~flags)
        for offset in range(_PARTS):  # most rows are near one of a few reference rows, which settles it
            squared = _nearest_squared(varying[left], self.reference[offset::_PARTS])
            left = left[squared > self.radius**2]
        flags[left] = True
        return flags

    def outside(self, X: Any) -> BoolArray:
        """Return which rows (n, d) lie where the source has none."""
        flags = self.far(X)
        if self.direction is not None:
            rows = as_matrix(X, "X")
            flags = flags | (row_dot((rows - self.center) / self.scale, self.direction) > self.ceiling)
        return flags


@few_threads()
def _nearest_squared(rows: FloatArray, reference: FloatArray, *, skip_self: bool = False) -> FloatArray:
    """Return the squared distance (n,) of each row to the nearest reference row.

    Rounding is taken off, except with ``skip_self``, where ``rows`` are the reference rows themselves.
    """
    if not (len(rows) and len(reference)):
        return np.full(len(rows), np.inf)
    lengths = np.einsum("ij,ij->i", reference, reference)
    own = np.einsum("ij,ij->i", rows, rows)
    # |x - r|^2 - |x|^2 = (x, 1) . (-2r, |r|^2): one product, small enough to stay in the cache
    augmented = np.vstack([-2.0 * reference.T, lengths])
    nearest, closest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        within = np.arange(len(part))
        relative = np.column_stack([part, np.ones(len(part))]) @ augmented
        if skip_self:
            relative[within, start + within] = np.inf
        at = closest[start : start + _CHUNK] = relative.argmin(axis=1)
        nearest[start : start + _CHUNK] = relative[within, at]
    rounding = 0.0 if skip_self else _ROUNDING * (own + lengths[closest])
    squared: FloatArray = np.maximum(nearest + own - rounding, 0.0)
    return squared
