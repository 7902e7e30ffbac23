"""LR-QR: quantile regression whose threshold is pulled towards the likelihood ratio (arXiv:2502.13030)."""

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lrqr import solvers
from lrqr.arrays import (
    COUNT,
    NONNEGATIVE,
    PAIR,
    POSITIVE,
    SEED,
    FloatArray,
    IntArray,
    array,
    few_threads,
    without_outliers,
)
from lrqr.errors import DataError, UsageError
from lrqr.methods import selection as selections
from lrqr.methods.estimator import ThresholdEstimator, refuse_known
from lrqr.solvers.bounded import Bounds
from lrqr.stats.moments import Moments

# A feature whose spread is below this share of its size is constant; features correlated above 1 minus
# the second number are copies of each other.
_CONSTANT = 1e-12
_COPY = 1e-12
# Scores within this share of the scale from their threshold are met: rows that the optimum interpolates.
_MET = 1e-7
# What rounding may take from a threshold, relative to the numbers it is summed from.
_ROUNDING = 1e-12
# λ below this, in units of the scaled scores, is 0 in float64.
_NO_REGULARIZATION = 1e-18
# Products of larger parameters overflow.
_LARGEST = 1e100

_REASON = "LRQR estimates no likelihood ratio"


@dataclass(repr=False, eq=False)
class LRQR(ThresholdEstimator):
    """Thresholds that keep their coverage under covariate shift.

    Minimizes, over γ and β, Ê1[ℓ(γ·φ, S)] + λ (β² γ'Σγ - 2β m·γ) with φ = (1, x), eq. (2) of docs/method.md
    and Algorithm 1 of arXiv:2502.13030. The threshold is h(x) = γ·φ(x).

    Parameters
    ----------
    coverage : float, default=0.9
        1 - α: share of target rows whose score should be at most the threshold.
    regularization : float or "auto", default="auto"
        λ, in units of the scaled scores. "auto" chooses it by ``selection``.
    ridge : float or "auto", default="auto"
        Added to the diagonal of Σ for all but the constant, in the (standardized) feature coordinates.
    selection : str, default="auto"
        The rule that chooses what is "auto": one of ``lrqr.methods.selection.RULES``.
    score_scale : float or "auto", default="auto"
        Scores are divided by it. "auto": their coverage-quantile.
    standardize : bool, default=True
        Standardize features with the pooled mean and spread of source and target. Constant features and
        further copies of a feature then get the coefficient 0, so that they change nothing.
    solver : str, default="newton"
        "newton", "interior" or "reference".
    tol : float, default=1e-6
        Largest duality gap, relative to the pinball loss.
    random_state : int, default=0
        Seed of the cross-validation folds.
    largest_norm : float, optional
        B of the paper's section 4: γ is kept to ‖γ‖ <= B, the constant's coefficient included, in
        (standardized) features and scaled scores. With it a ridge of 0 always has a solution.
    beta_range : (low, high), optional
        The paper's β_min and β_max, 0 < low <= high. What is "auto" is chosen without these two bounds.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Coefficients of the threshold, score units per feature unit.
    intercept_ : float
        In score units.
    beta_ : float
        β: β · (h(x) - score_offset_) / score_scale_ is the regularized likelihood ratio.
    regularization_, ridge_, score_scale_ : float
        As used.
    score_offset_ : float
        Smallest score if that is negative, else 0. It is subtracted before fitting, because the pull towards
        a ratio >= 0 makes sense for scores >= 0 only.
    slack_ : float
        Added by `predict`: about 1e-7 of the scale at the most, so that scores which the optimum meets are
        covered in spite of rounding (ties are covered). In score units.
    objective_ : float
        F at the solution, in units of the scaled, shifted scores.
    gap_ : float
        Duality gap at ``beta_``, same units: ``coef_`` is at most this far from optimal.
    converged_ : bool
    n_iter_ : int
    branch_ : str
        "infinity", "zero" or "grid": where the winning start of the solver came from.
    selection_table_ : list of dict
        The cross-validation table; empty when nothing was chosen.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when fitted on a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(500, 2)), rng.normal(size=(300, 2)) + [1.0, 0.0]
    >>> scores = np.abs(rng.normal(size=500)) * (1.0 + 0.5 * source[:, 0] ** 2)
    >>> model = LRQR(coverage=0.9).fit(source, scores, X_target=target)
    >>> model.predict(target).shape
    (300,)
    """

    STATE: ClassVar[dict[str, Any]] = {
        "score_offset_": float,
        "score_scale_": POSITIVE,
        "ridge_": NONNEGATIVE,
        "regularization_": NONNEGATIVE,
        "selection_table_": list[dict[str, Any]],
        "coef_": array("d"),
        "intercept_": float,
        "beta_": float,
        "objective_": float,
        "gap_": float,
        "converged_": bool,
        "n_iter_": COUNT,
        "branch_": str,
        "slack_": NONNEGATIVE,
    }

    regularization: NONNEGATIVE | Literal["auto"] = "auto"
    ridge: NONNEGATIVE | Literal["auto"] = "auto"
    selection: str = "auto"
    score_scale: POSITIVE | Literal["auto"] = "auto"
    standardize: bool = True
    solver: str = "newton"
    tol: float = 1e-6
    random_state: SEED | None = 0
    largest_norm: POSITIVE | None = None
    beta_range: PAIR | None = None

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
        """Fit the threshold.

        Parameters
        ----------
        X : array-like of shape (n1, d)
            Features of labeled source rows, without a constant column.
        y : array-like of shape (n1,)
            Their scores; larger is worse.
        X_target : array-like of shape (n2, d), optional
            Unlabeled target rows; X itself when left out.
        X_source : array-like of shape (n3, d), optional
            Unlabeled source rows; X itself when left out.
        ratio : optional
            Not used; a fitted ratio that is shared with other methods is ignored, known ratios are refused.
        groups : array-like of shape (n1,), optional
            Clusters of the rows of X, which share a fold of the cross-validation, as copies of a row do.
        """
        refuse_known(ratio, _REASON)
        self._check_numbers()
        rows, scores, coverage = self._start(X, y)
        target = rows if X_target is None else self._other(X_target, "X_target")
        source = rows if X_source is None else self._other(X_source, "X_source")

        lowered = without_outliers(scores)
        center, spread, kept = self._standardization(rows, source, target)
        labeled, source_rows, target_rows = (
            (part[:, kept] - center[kept]) / spread[kept] for part in (rows, source, target)
        )
        own_source = None if X_source is None else source_rows
        for used in (lowered, scores):
            self.score_offset_ = min(0.0, float(used.min()))
            shifted = used - self.score_offset_
            self.score_scale_ = self._scale(shifted, coverage)
            with few_threads(float(rows.size) * rows.shape[1]):
                solution = self._solve(labeled, shifted / self.score_scale_, target_rows, own_source, groups)
            self._store(solution, center, spread, kept, rows.shape[1])
            # The loss asks on which side of its threshold a score lies: while the lowered ones stay above,
            # the minimum is the same.
            if (self._plain(rows) < lowered)[used < scores].all():
                break
        self.slack_ = self._cover_ties(rows, used)
        return self

    def _solve(
        self,
        labeled: FloatArray,
        scaled: FloatArray,
        target: FloatArray,
        source: FloatArray | None,
        groups: Any,
    ) -> solvers.Solution:
        """Choose λ and the ridge, and solve in standardized features and scaled scores."""
        coverage = float(self.coverage)
        self.ridge_, self.regularization_, self.selection_table_ = selections.select(
            labeled,
            scaled,
            target,
            source,
            coverage=coverage,
            rule=self.selection,
            regularization=self.regularization,
            ridge=self.ridge,
            tol=self.tol,
            solver=self.solver,
            random_state=self.random_state,
            groups=groups,
        )
        strength = self.regularization_ if self.regularization_ > _NO_REGULARIZATION else 0.0
        problem = selections.problem(labeled, scaled, target, source, self.ridge_, coverage, strength)
        bounds = Bounds(self.largest_norm, self.beta_range)
        return solvers.solve(problem, solver=self.solver, tol=self.tol, bounds=bounds)

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return the thresholds h(x) of the rows of X, shape (n,), in score units."""
        refuse_known(ratio, _REASON)
        rows = self._rows(X)
        # Row by row in a fixed order of summation: a row's threshold does not depend on its batch.
        return np.asarray(self._plain(rows) + self.slack_, dtype=np.float64)

    def _plain(self, rows: FloatArray) -> FloatArray:
        return np.asarray((rows * self.coef_).sum(axis=1) + self.intercept_, dtype=np.float64)

    def _cover_ties(self, rows: FloatArray, scores: FloatArray) -> float:
        """Return what covers the scores that the solver meets up to its accuracy, and no others."""
        short = scores - self._plain(rows)
        met = short[np.abs(short) <= _MET * self.score_scale_]
        size = np.abs(scores).max() + np.abs(rows * self.coef_).sum(axis=1).max() + abs(self.intercept_)
        return float(max(met.max(initial=0.0), 0.0) + _ROUNDING * max(size, self.score_scale_))

    def _check_numbers(self) -> None:
        for name, floor in (("regularization", 0.0), ("ridge", 0.0), ("score_scale", None)):
            value: Any = getattr(self, name)
            if isinstance(value, str) and value == "auto":
                continue
            if not isinstance(value, Real):
                raise UsageError(f'{name} must be a number or "auto", got {value!r}')
            number = float(value)
            low = number < floor if floor is not None else number <= 0.0
            if not np.isfinite(number) or low or number > _LARGEST:
                bound = f"<= {_LARGEST:g}" if number > _LARGEST else "> 0" if floor is None else ">= 0"
                raise UsageError(f"{name} must be a finite number {bound}, got {value}")
        self._check_bound("largest_norm", "a number > 0", 1)
        self._check_bound("beta_range", "two numbers, 0 < low <= high", 2)

    def _check_bound(self, name: str, wanted: str, length: int) -> None:
        given: Any = getattr(self, name)
        if given is None:
            return
        numbers = list(given) if isinstance(given, tuple | list) else [given]
        fine = [
            float(value) for value in numbers if isinstance(value, Real) and 0.0 < float(value) <= _LARGEST
        ]
        if not len(fine) == len(numbers) == length or fine[0] > fine[-1]:
            raise UsageError(f"{name} must be {wanted}, got {given!r}")

    def _other(self, X: Any, name: str) -> FloatArray:
        """Rows of another sample; a data frame's columns are matched by name, never by position."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns"):
            missing = [str(column) for column in names if column not in list(X.columns)]
            if missing:
                raise DataError(f"{name} lacks the columns {', '.join(missing)}")
            X = X[list(names)]
        rows = self._rows(X, name)
        if not len(rows):
            raise DataError(f"{name} has 0 rows; at least one is needed")
        return rows

    def _scale(self, scores: FloatArray, coverage: float) -> float:
        if not isinstance(self.score_scale, str):
            return float(self.score_scale)
        quantile = float(np.quantile(scores, coverage, method="inverted_cdf"))
        return quantile or float(scores.max()) or 1.0

    def _standardization(
        self, rows: FloatArray, source: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Center and spread of the features, and which features to keep."""
        d = rows.shape[1]
        if not self.standardize:
            return np.zeros(d), np.ones(d), np.arange(d)
        pooled = Moments.of(source).merge(Moments.of(target))
        spread = pooled.spread
        alive = spread > _CONSTANT * np.maximum(np.abs(pooled.mean), np.finfo(float).tiny)
        every = pooled if source is rows else pooled.merge(Moments.of(rows))
        size = np.sqrt(np.diag(every.scatter))
        size = np.where(alive, size, 1.0)
        correlation = np.abs(every.scatter / np.outer(size, size))
        copies = (np.triu(correlation, 1) > 1.0 - _COPY) & np.outer(alive, alive)
        kept = np.flatnonzero(alive & ~copies.any(axis=0))
        return pooled.mean, np.where(alive, spread, 1.0), kept

    def _store(
        self, solution: solvers.Solution, center: FloatArray, spread: FloatArray, kept: IntArray, d: int
    ) -> None:
        self.coef_ = np.zeros(d)
        self.coef_[kept] = self.score_scale_ * solution.coef[1:] / spread[kept]
        self.intercept_ = float(
            self.score_scale_ * solution.coef[0] + self.score_offset_ - self.coef_[kept] @ center[kept]
        )
        self.beta_ = float(solution.beta)
        self.objective_ = float(solution.objective)
        self.gap_ = float(solution.gap)
        self.converged_ = bool(solution.converged)
        self.n_iter_ = int(solution.iterations)
        self.branch_ = solution.branch
        if not self.converged_:
            warnings.warn(
                f"LRQR stopped with a duality gap of {self.gap_:.2g}, above tol = {self.tol:g} of the loss; "
                "raise ridge or regularization, or loosen tol",
                ConvergenceWarning,
                stacklevel=3,
            )


ESTIMATOR = LRQR
