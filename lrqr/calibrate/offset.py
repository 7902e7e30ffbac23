"""The offset that lifts a fitted shape to the promised coverage, and the certificate of what that promises.

The certificate asks for each row whether it is covered by a fit that has not seen it; see
`lrqr.stats.certificate`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from sklearn.base import clone

from lrqr.arrays import LEVEL, Stored, array, optional, same
from lrqr.stats.certificate import Certificate, certify
from lrqr.stats.folds import canonical_order, fold_rows
from lrqr.stats.quantiles import conformal_quantile, weighted_quantile

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

FOLDS = 5

TEST_MASS = 0.5
"""Share of a test row's ratio that sits at infinity.

All of it (1) is what weighted conformal prediction needs for coverage >= 1-α. But its quantile is also
rounded up to the next calibration row, which adds half a row's weight on average, so half of it is what
makes the mean coverage 1-α. With equal weights: rank ⌈(n+½)(1-α)⌉ of n rows covers 1-α + α/(2(n+1)),
averaged over the rounding.
"""


def shape_level(coverage: float) -> float:
    """Return the level of the quantile that gives the shape: 1-2α, where the sets come out smallest.

    Examples
    --------
    >>> round(shape_level(0.9), 12), round(shape_level(0.5), 12)
    (0.8, 0.25)
    """
    return max(2.0 * coverage - 1.0, coverage / 2.0)


@dataclass(frozen=True)
class Offset(Stored):
    """Weighted conformal quantile of the residuals S - h(x) of a fitted threshold h.

    Attributes
    ----------
    residuals : (n,) array
        Score minus threshold of the calibration rows, score units.
    ratios : (n,) array
        Their likelihood ratios.
    level : float
        1-α.
    unit : float
        Rows that a new row stands for (`lrqr.stats.folds.group_size`).
    """

    STATE: ClassVar[dict[str, Any]] = {
        "residuals": array("n"),
        "ratios": array("n", within="[0, inf)"),
        "level": Annotated[LEVEL, same("level")],
        "unit": optional(float),
    }

    residuals: FloatArray
    ratios: FloatArray
    level: float
    unit: float = 1.0

    def lift(self, ratio: FloatArray) -> FloatArray:
        """Return what to add to the thresholds (m,) of rows with these ratios; may be ``+inf``."""
        return weighted_quantile(self.residuals, self.ratios, TEST_MASS * self.unit * ratio, self.level)


@dataclass(frozen=True)
class Evidence:
    """All that a method was fitted on, to fit it again on some of the rows.

    Attributes
    ----------
    method : unfitted estimator
        With the λ and the ridge that were chosen.
    rows : (n, p) array
        What it sees of the calibration rows.
    scores : (n,) array
    ratios : (n,) array
        Out-of-fold, or known, likelihood ratios of the calibration rows.
    features, features_target : (n, q), (m, q) arrays
        Learned features, of which the chance to be covered is taken to be a function.
    unlabeled : dict
        ``X_target`` and ``X_source``, where there are such rows.
    shape : float or None
        Level of the shape that a weighted quantile of the residuals lifts; None where nothing is lifted.
    floored : bool
        Whether thresholds are at least the conformal quantile of the scores.
    groups : (n,) array or None
        Which rows no fold divides, as `lrqr.stats.folds.together` says.
    """

    method: Any
    rows: FloatArray
    scores: FloatArray
    ratios: FloatArray
    features: FloatArray
    features_target: FloatArray
    unlabeled: dict[str, FloatArray]
    shape: float | None = None
    floored: bool = False
    groups: IntArray | None = None

    def certificate(
        self,
        thresholds: FloatArray,
        coverage: float,
        *,
        at_least: float | None = None,
        outside: float = 0.0,
        answered: tuple[BoolArray, BoolArray] | None = None,
    ) -> Certificate:
        """Bound the coverage of `thresholds` at this level from below, on ``answered`` rows."""
        # in an order that depends on their contents only: shuffled rows have the same certificate
        order = canonical_order(self.rows, self.features, self.scores)
        of_target = canonical_order(self.features_target)
        if answered is not None:
            order, of_target = order[answered[0][order]], of_target[answered[1][of_target]]
        return certify(
            (self.scores <= thresholds)[order],
            self.ratios[order],
            self.features[order],
            self.features_target[of_target],
            coverage=coverage,
            at_least=at_least,
            outside=outside,
            groups=None if self.groups is None else self.groups[order],
        )

    def thresholds(self, level: float) -> FloatArray:
        """Return the threshold (n,) of each row from a fit without it, over five folds."""
        n = len(self.scores)
        if n < FOLDS:
            return np.full(n, np.inf)
        columns = self.rows, self.features, self.scores
        found, fold = np.empty(n), fold_rows(columns, FOLDS, 0, self.groups)
        method = clone(self.method).set_params(coverage=level if self.shape is None else self.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k in np.unique(fold):
                rest, held = fold != k, fold == k
                ratios, own = (
                    {"ratio": self.ratios[rows]} if method.USES_RATIO else {} for rows in (rest, held)
                )
                fitted = clone(method).fit(self.rows[rest], self.scores[rest], **self.unlabeled, **ratios)
                found[held] = fitted.predict(self.rows[held], **own)
                if self.shape is not None:
                    offset = Offset(
                        self.scores[rest] - fitted.predict(self.rows[rest]), self.ratios[rest], level
                    )
                    found[held] += offset.lift(self.ratios[held])
                if self.floored:
                    found[held] = np.maximum(found[held], conformal_quantile(self.scores[rest], level))
        return found
