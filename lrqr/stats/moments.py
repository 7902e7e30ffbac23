"""Count, mean and second moment of rows: all that LR-QR needs of unlabeled data.

They add up, so they stream over batches and merge over machines. Kept as mean and centered scatter
(Chan, Golub & LeVeque 1983), which loses no digits when a feature is far from zero.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from lrqr.arrays import FloatArray, as_matrix, few_threads
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
    def of(cls, X: Any) -> Self:
        """Return the moments of the rows of X, shape (n, d), n >= 0."""
        rows = as_matrix(X, "X")
        mean = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
        centered = rows - mean
        with few_threads(float(rows.size) * rows.shape[1]):
            return cls(len(rows), mean, centered.T @ centered)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each feature (divisor: count), shape (d,)."""
        self._require_rows()
        return np.sqrt(np.diag(self.scatter) / self.count)

    def merge(self, other: Self) -> Self:
        """Return the moments of the rows of both."""
        if len(self.mean) != len(other.mean):
            raise DataError(f"cannot merge moments of {len(self.mean)} and of {len(other.mean)} features")
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        gap = other.mean - self.mean
        mean = self.mean + gap * (other.count / count)
        scatter = self.scatter + other.scatter + np.outer(gap, gap) * (self.count * other.count / count)
        return type(self)(count, mean, scatter)

    def affine(self, shift: FloatArray, scale: FloatArray) -> Self:
        """Return the moments of (x - shift) / scale, feature by feature."""
        return type(self)(self.count, (self.mean - shift) / scale, self.scatter / np.outer(scale, scale))

    def augmented_mean(self) -> FloatArray:
        """Mean of φ = (1, x), shape (d + 1,): m of eq. (2) in docs/method.md."""
        self._require_rows()
        return np.concatenate([[1.0], self.mean])

    def augmented_second(self, ridge: float = 0.0) -> FloatArray:
        """Mean of φφ' for φ = (1, x), plus ``ridge`` on all but the constant, shape (d + 1, d + 1)."""
        phi = self.augmented_mean()
        second = np.outer(phi, phi)
        second[1:, 1:] += self.scatter / self.count
        second.flat[len(phi) + 1 :: len(phi) + 1] += ridge
        return second

    def _require_rows(self) -> None:
        if not self.count:
            raise DataError("moments of no rows: the sample is empty")
