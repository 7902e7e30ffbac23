"""Sums over rows that are all LR-QR needs of unlabeled data: count, mean and second moment.

They add up, so they stream over batches and merge over machines. Kept as mean and centered scatter
(Chan, Golub & LeVeque 1983), which loses no digits when a feature is far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lrqr.arrays import FloatArray, as_matrix
from lrqr.errors import DataError


@dataclass(frozen=True)
class Moments:
    """Moments of feature rows, without the constant feature.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (d,)
        Mean of the rows; zero when there are none.
    scatter : ndarray of shape (d, d)
        Sum over rows of (x - mean)(x - mean)'.
    """

    count: int
    mean: FloatArray
    scatter: FloatArray

    @classmethod
    def empty(cls, d: int) -> Moments:
        """Return the moments of no rows."""
        return cls(0, np.zeros(d), np.zeros((d, d)))

    @classmethod
    def of(cls, X: Any) -> Moments:
        """Return the moments of the rows of X, shape (n, d)."""
        rows = as_matrix(X, "X")
        if not len(rows):
            return cls.empty(rows.shape[1])
        mean = rows.mean(axis=0)
        centered = rows - mean
        return cls(len(rows), mean, centered.T @ centered)

    @property
    def d(self) -> int:
        """Number of features, the constant not counted."""
        return len(self.mean)

    @property
    def total(self) -> FloatArray:
        """Sum of the rows, shape (d,)."""
        return self.count * self.mean

    @property
    def second(self) -> FloatArray:
        """Sum over rows of xx', shape (d, d)."""
        return self.scatter + self.count * np.outer(self.mean, self.mean)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each feature (divisor: count), shape (d,)."""
        self._require_rows()
        return np.sqrt(np.diag(self.scatter) / self.count)

    def add(self, X: Any) -> Moments:
        """Return the moments with the rows of X, shape (n, d), added."""
        return self.merge(Moments.of(X))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        if self.d != other.d:
            raise DataError(f"cannot merge moments of {self.d} and of {other.d} features")
        if not self.count or not other.count:
            return other if not self.count else self
        count = self.count + other.count
        gap = other.mean - self.mean
        mean = self.mean + gap * (other.count / count)
        scatter = self.scatter + other.scatter + np.outer(gap, gap) * (self.count * other.count / count)
        return Moments(count, mean, scatter)

    def affine(self, shift: FloatArray, scale: FloatArray) -> Moments:
        """Return the moments of (x - shift) / scale, feature by feature."""
        return Moments(self.count, (self.mean - shift) / scale, self.scatter / np.outer(scale, scale))

    def take(self, columns: Any) -> Moments:
        """Return the moments of some of the features."""
        index = np.asarray(columns)
        return Moments(self.count, self.mean[index], self.scatter[np.ix_(index, index)])

    def augmented_mean(self) -> FloatArray:
        """Mean of φ = (1, x), shape (d + 1,): m of eq. (2) in docs/method.md."""
        self._require_rows()
        return np.concatenate([[1.0], self.mean])

    def augmented_second(self, ridge: float = 0.0) -> FloatArray:
        """Mean of φφ' for φ = (1, x), plus ``ridge`` on all but the constant, shape (d + 1, d + 1)."""
        self._require_rows()
        second = np.empty((self.d + 1, self.d + 1))
        second[0, 0] = 1.0
        second[0, 1:] = second[1:, 0] = self.mean
        second[1:, 1:] = self.scatter / self.count + np.outer(self.mean, self.mean)
        second[np.arange(1, self.d + 1), np.arange(1, self.d + 1)] += ridge
        return second

    def _require_rows(self) -> None:
        if not self.count:
            raise DataError("moments of no rows: the sample is empty")
