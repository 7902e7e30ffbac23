"""The rows of one domain as arrays: what a calibration is given, from files, frames and experiments alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr.stats.folds import together

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray


def coded(X: Any, X_target: Any = None) -> tuple[FloatArray, FloatArray | None]:
    """Return what tells rows apart as numbers (n, d): each value of a column, of any type, has its code."""
    import pandas as pd

    tables = [X] if X_target is None else [X, X_target]
    if hasattr(X, "columns"):
        shared = [name for name in X.columns if all(name in table.columns for table in tables)]
        columns = [[np.asarray(table[name], dtype=object) for table in tables] for name in shared]
    else:
        plain = [np.asarray(table) for table in tables]
        flat = any(part.ndim != 2 for part in plain)  # refused later, with a word
        columns = [] if flat else [list(parts) for parts in zip(*(part.T for part in plain), strict=False)]
    codes = [pd.factorize(np.concatenate(parts))[0] for parts in columns]
    n, rows = np.shape(X)[0], sum(np.shape(table)[0] for table in tables)
    matrix = np.column_stack(codes).astype(np.float64) if codes else np.empty((rows, 0))
    return matrix[:n], None if X_target is None else matrix[n:]


@dataclass(frozen=True)
class Rows:
    """Rows of one domain.

    Attributes
    ----------
    features : (n, d) array
        Numeric features without a constant column.
    outcome : (n,) array or None
        The outcome (float), the index of the class (int), or the score itself (float) where the user computes
        it; None where it is unknown.
    prediction : (n, k) array or None
        What the score needs: one prediction, two quantiles, or a probability for each class. None where
        there is none, or where a base learner is still to be fitted.
    ratio : (n,) array or None
        The known likelihood ratio dP_target/dP_source, up to a constant factor.
    groups : (n,) array or None
        Clusters: rows with the same name here are not independent of each other.
    """

    features: FloatArray
    outcome: np.ndarray[Any, Any] | None = None
    prediction: FloatArray | None = None
    ratio: FloatArray | None = None
    groups: np.ndarray[Any, Any] | None = None

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def take(self, index: IntArray | BoolArray) -> Rows:
        """Return the rows at ``index``, row numbers or a mask of shape (n,)."""
        taken = {name: part[index] for name, part in vars(self).items() if part is not None}
        return Rows(**taken)

    def together(self, other: Rows | None = None) -> IntArray | None:
        """Return which rows no split divides: copies, judged by those of ``other`` (target), and clusters."""
        known, elsewhere = self.known(other)
        return together(known, self.outcome, other=elsewhere, clusters=self.groups)

    def known(self, other: Rows | None = None) -> tuple[FloatArray, FloatArray | None]:
        """Return what is known of these rows and ``other`` alike: features, and predictions of both."""
        parts = [self] if other is None else [self, other]
        hints = [rows.prediction for rows in parts if rows.prediction is not None]
        found: list[FloatArray] = [rows.features for rows in parts]
        if len(hints) == len(parts):
            found = [np.column_stack(pair) for pair in zip(found, hints, strict=True)]
        return found[0], None if other is None else found[1]

    def unlabeled(self) -> Rows:
        """Return the same rows without their outcomes."""
        return replace(self, outcome=None)
