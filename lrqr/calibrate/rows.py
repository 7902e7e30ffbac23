"""The rows of one domain as arrays: what a calibration is given, from files, frames and experiments alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from lrqr.arrays import BoolArray, FloatArray, IntArray


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
    """

    features: FloatArray
    outcome: np.ndarray[Any, Any] | None = None
    prediction: FloatArray | None = None
    ratio: FloatArray | None = None

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def take(self, index: IntArray | BoolArray) -> Rows:
        """Return the rows at ``index``, row numbers or a mask of shape (n,)."""
        taken = {name: part[index] for name, part in vars(self).items() if part is not None}
        return Rows(**taken)

    def unlabeled(self) -> Rows:
        """Return the same rows without their outcomes."""
        return replace(self, outcome=None)
