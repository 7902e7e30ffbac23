"""Conformal prediction with conditional guarantees over a linear class of features."""

import hashlib
import math
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog

from lrqr.arrays import NONNEGATIVE, SEED, FloatArray, IntArray, agree, array, row_dot, squarable
from lrqr.errors import ArtifactError, NotConverged
from lrqr.methods.estimator import ThresholdEstimator, refuse_known, warn_few
from lrqr.plugins import check_choice
from lrqr.stats.folds import canonical_order

MODES = ("imputed", "randomized", "naive")

_REASON = "the conditional method uses no likelihood ratio"
_SHIFT = 1e-8  # how far below 1-α the mass of the imputed row is taken: the sup of an open set
_TOLERANCE = 1e-10


def _uniform(row: FloatArray, seed: int) -> float:
    """Return a uniform number in (0, 1) that depends on the seed and the row alone, not on the batch."""
    digest = hashlib.blake2b((row + 0.0).tobytes(), digest_size=8, key=str(seed).encode()).digest()
    return (int.from_bytes(digest, "little") + 0.5) / 2.0**64


def _rounding(scores: FloatArray) -> float:
    """Return what rounding may take from a threshold."""
    return 1e-12 * float(np.abs(scores).max())


class _Vertex:
    """A vertex of F(β) = Σ ρ(S_i - Φ_i'β) - c'β, ρ(u) = max(τu, (τ-1)u), and descent along edges.

    The simplex method of Koenker and d'Orey (1987): a vertex interpolates as many rows as there are
    coefficients; each step leaves one of them along an edge and walks past all kinks while F falls. A
    vertex for one c is a warm start for another, since only the slopes change.
    """

    def __init__(
        self, design: FloatArray, scores: FloatArray, level: float, basis: IntArray | None = None
    ) -> None:
        self.design, self.scores, self.level = design, scores, level
        # Scores are parted by less than anyone can see, so that no two kinks coincide and no step is idle.
        size = float(np.abs(scores - np.median(scores)).max()) or 1.0
        self._parted = scores + 1e-10 * size * np.random.default_rng(0).uniform(-1.0, 1.0, len(scores))
        self.basis = self._first_basis() if basis is None else basis.copy()
        self._refresh()

    def copy(self) -> Self:
        """Return a vertex that can move without moving this one."""
        other = copy(self)
        other.basis, other.inverse = self.basis.copy(), self.inverse.copy()
        other.residual = self.residual.copy()
        return other

    def coefficients(self) -> FloatArray:
        """Return β (d,) from the true scores of the interpolated rows."""
        return np.asarray(np.linalg.solve(self.design[self.basis], self.scores[self.basis]), dtype=np.float64)

    def descend(self, tilt: FloatArray) -> bool:
        """Go down to the minimum for c = ``tilt`` (d,); return False if there is none."""
        rows, dimension = self.design.shape
        for step in range(50 * (rows + dimension)):
            if step % 50 == 49:
                self._refresh()
            mass = np.where(self.residual > 0.0, self.level, self.level - 1.0)
            mass[self.basis] = 0.0
            inner = -(tilt + mass @ self.design) @ self.inverse
            above, below = inner - self.level, self.level - 1.0 - inner
            slopes = -np.maximum(above, below)
            leaving = int(np.argmin(slopes))
            if slopes[leaving] >= -_TOLERANCE:
                return True
            sign = 1.0 if above[leaving] > below[leaving] else -1.0
            if not self._walk(leaving, sign, float(slopes[leaving])):
                return False
        return self._rescue(tilt)

    def _walk(self, leaving: int, sign: float, slope: float) -> bool:
        """Leave one interpolated row along its edge and stop at the kink where F stops falling."""
        edge = self.inverse[:, leaving].copy()
        rate = sign * (self.design @ edge)
        rate[self.basis] = 0.0
        meets = np.flatnonzero((np.abs(rate) > 1e-11) & (self.residual * rate < 0.0))
        lengths = -self.residual[meets] / rate[meets]
        order = np.argsort(lengths)
        slopes = slope + np.cumsum(np.abs(rate[meets[order]]))
        if slopes.size == 0 or slopes[-1] < -1e-12:
            return False
        stop = order[int(np.searchsorted(slopes, -1e-12))]
        entering = int(meets[stop])
        self.residual += lengths[stop] * rate
        self.residual[self.basis[leaving]] = sign * lengths[stop]
        self.residual[entering] = 0.0
        across = self.design[entering] @ self.inverse
        self.inverse -= np.outer(edge, across / across[leaving])
        self.inverse[:, leaving] = edge / across[leaving]
        self.basis[leaving] = entering
        return True

    def _first_basis(self) -> IntArray:
        """Take independent rows near a least-squares fit moved to the level."""
        fit = np.linalg.lstsq(self.design, self.scores, rcond=None)[0]
        residual = self.scores - self.design @ fit
        far = np.abs(residual - np.sort(residual)[int(self.level * (len(residual) - 1))])
        return self._independent(1.0 / (far + 0.1 * (far.mean() or 1.0)))

    def _independent(self, weights: FloatArray) -> IntArray:
        """Return as many independent rows as there are columns, those of large weight (n,) first."""
        chosen = qr((self.design * weights[:, None]).T, mode="r", pivoting=True)[-1]
        return np.asarray(chosen[: self.design.shape[1]], dtype=np.int64)

    def _refresh(self) -> None:
        self.inverse = np.linalg.inv(self.design[self.basis])
        self.residual = self._parted - self.design @ (self.inverse @ self._parted[self.basis])
        self.residual[self.basis] = 0.0

    def _rescue(self, tilt: FloatArray) -> bool:
        """Let HiGHS solve what rounding kept from ending, and adopt the rows that it interpolates."""
        box = (self.level - 1.0, self.level)
        answer = linprog(-self._parted, A_eq=self.design.T, b_eq=-tilt, bounds=box, method="highs-ds")
        if answer.status == 2:
            return False
        if answer.status != 0:
            raise NotConverged(f"quantile regression did not converge: {answer.message}")
        near = np.abs(self._parted + self.design @ answer.eqlin.marginals)
        self.basis = self._independent(1.0 / (near + 1e-9 * (near.max() or 1.0)))
        self._refresh()
        return True


@dataclass(repr=False, eq=False)
class Conditional(ThresholdEstimator):
    """Conditional conformal prediction of Gibbs, Cherian and Candès (2023) over Φ(x) = (1, x).

    Covers with probability at least 1-α under every reweighting of the source by a non-negative function
    in the span of Φ, hence under covariate shift whose ratio is linear in the features. The threshold of a
    row is the largest score with which, added to the calibration rows, it would still lie on or below the
    quantile regression of all rows; it is +inf where the sample does not support the row.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    mode : {"imputed", "randomized", "naive"}
        "imputed" is the authors' default. "randomized" makes the coverage exact instead of at least 1-α,
        with thresholds that may be far smaller, even -inf; a row's random number depends on ``random_state``
        and the row alone. "naive" is plain quantile regression (LR-QR with λ = 0): always finite and
        instant, but it covers about (d/n)(1/2-α) too little.
    random_state : int
        Seed of "randomized".

    Attributes
    ----------
    coef_, intercept_ : (d,) array, float
        Quantile regression of the calibration scores, the "naive" threshold.
    rounding_ : float
        What is added to thresholds, 1e-12 of the largest score, so that ties count as covered.
    max_score_ : float
        Largest calibration score.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "center_": array("d"),
        "scale_": array("d", within="(0, inf)"),
        "span_": array("design", "basis", within="[-2, 2]"),  # columns of length 1
        "design_": array("n", "basis"),
        "scores_": array("n"),
        "rounding_": NONNEGATIVE,
        "basis_": array("basis", of=int, within="[0, n)"),
        "coef_": array("d"),
        "intercept_": float,
    }

    def _complete(self, sizes: dict[str, Any]) -> None:
        agree(sizes, "design", self.n_features_in_ + 1, "fitted.span_")
        agree(sizes, "largest", float(self.scores_.max()), "fitted.scores_")
        agree({"rounding": _rounding(self.scores_)}, "rounding", self.rounding_, "fitted.rounding_")
        if np.linalg.matrix_rank(self.design_[self.basis_]) < len(self.basis_):
            raise ArtifactError("fitted.design_: the rows of basis_ must be independent")

    _: KW_ONLY
    mode: Literal["imputed", "randomized", "naive"] = "imputed"
    random_state: SEED = 0

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_target: Any = None,
        X_source: Any = None,
        ratio: Any = None,
        groups: Any = None,
    ) -> Self:
        """Regress the scores y (n1,) on the features; the unlabeled rows play no part."""
        del groups  # nothing is split
        refuse_known(ratio, _REASON)
        features, scores, level = self._start(X, y)
        squarable(scores)
        check_choice("mode", self.mode, MODES)
        for name, rows in (("X_target", X_target), ("X_source", X_source)):
            if rows is not None:
                self._rows(rows, name)
        warn_few(np.ones(len(scores)), level)
        order = canonical_order(features, scores)
        features, scores = features[order], scores[order]
        self.center_, spread = features.mean(axis=0), features.std(axis=0)
        flat = spread <= 1e-12 * np.abs(features).max(axis=0)
        self.scale_ = np.where(flat, 1.0, spread)
        self.center_ = np.where(flat, features[0], self.center_)  # exactly 0 on the sample
        design = self._design(features)
        # duplicated and constant columns leave directions that the sample does not know
        _, sizes, directions = np.linalg.svd(design, full_matrices=False)
        # laid out by rows, as an artifact stores them: another layout would round in another order
        self.span_ = np.ascontiguousarray(directions[sizes > 1e-9 * sizes[0]].T)
        self.design_, self.scores_ = np.ascontiguousarray(design @ self.span_), scores
        # thresholds interpolate scores: rounding must not put one a hair below the score it equals
        self.rounding_ = _rounding(scores)
        vertex = _Vertex(self.design_, scores, level)
        if not vertex.descend(np.zeros(self.design_.shape[1])):
            raise NotConverged("quantile regression of the scores is unbounded, which cannot be")
        self.basis_ = vertex.basis
        coef = self.span_ @ vertex.coefficients()
        self.coef_ = coef[1:] / self.scale_
        self.intercept_ = float(coef[0] - self.coef_ @ self.center_)
        return self

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return each row's threshold (n,) in score units."""
        refuse_known(ratio, _REASON)
        rows = self._rows(X)
        if self.mode == "naive":
            return row_dot(rows, self.coef_) + (self.intercept_ + self.rounding_)
        design = self._design(rows)
        inside = np.einsum("ij,jk->ik", design, self.span_, optimize=False)
        start = _Vertex(self.design_, self.scores_, self.coverage, self.basis_)
        thresholds = [self._threshold(*pair, start) for pair in zip(design, inside, strict=True)]
        return np.array(thresholds, dtype=np.float64) + self.rounding_

    def _threshold(self, full: FloatArray, row: FloatArray, start: _Vertex) -> float:
        """Solve for the fit with mass ``tilt`` on the new row, and read the threshold off it.

        With V(e) = min_β Σ ℓ(S_i - Φ_i'β) - e·Φ*'β, the mass η*(s) that the fit with (Φ*, s) gives to the
        new row maximizes V(e) + e·s. So sup{s : η*(s) < e} = -V'(e⁻) = Φ*'β at the mass e⁻, and it is
        infinite iff that program is unbounded.
        """
        if self.mode == "imputed":
            tilt = self.coverage - _SHIFT
        else:
            tilt = self.coverage - 1.0 + _uniform(full, self.random_state)
        unsupported = math.copysign(math.inf, tilt)
        if np.abs(full - self.span_ @ row).max() > 1e-9 * (1.0 + np.abs(full).max()):
            return unsupported
        vertex = start.copy()
        return float(row @ vertex.coefficients()) if vertex.descend(tilt * row) else unsupported

    def _design(self, X: FloatArray) -> FloatArray:
        return np.column_stack([np.ones(len(X)), (X - self.center_) / self.scale_])


ESTIMATOR = Conditional
