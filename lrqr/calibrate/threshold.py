"""A feature map and a method together: from features and scores to a threshold for any row."""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from lrqr import plugins
from lrqr.arrays import as_matrix, as_vector
from lrqr.calibrate import maps
from lrqr.calibrate.infinity import Infinite, cap_infinite
from lrqr.calibrate.learned import LearnedFeatures
from lrqr.calibrate.offset import Offset, shape_level
from lrqr.errors import DataError, UsageError
from lrqr.methods.estimator import as_ratio, check_coverage
from lrqr.methods.selection import lighten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lrqr.arrays import FloatArray
    from lrqr.plugins import FeatureMap
    from lrqr.stats.ratio import LikelihoodRatio

_ROUNDING = 2.0 * np.finfo(np.float64).eps


class ThresholdModel(BaseEstimator):
    """Thresholds as a function of features, by any method of ``lrqr.methods``.

    Parameters
    ----------
    method : str or estimator, default="lrqr"
        A name of ``lrqr.methods``, or an unfitted estimator of one of its classes.
    feature_map : {"auto", "given", "learned", "constant"}, default="auto"
        ``"given"``: the method sees the features as they are. ``"learned"``: it sees the cross-fitted domain
        log-odds and predicted score, gives the shape of the threshold at a lower level, and a weighted
        conformal quantile of its residuals lifts it to the promised one (docs/selection.md). ``"constant"``:
        the same with a constant shape. ``"auto"``: constant for classes and learned for all else, for LR-QR
        whose λ, ridge and rule are left to it, given at least 100 source and 50 target rows, unless more
        than α of these target rows would get an infinite threshold; else given.
    classify : bool, default=False
        Whether the sets are sets of classes, for ``feature_map="auto"``.
    coverage : float, default=0.9
        1-α. Not used when ``method`` is an estimator, which brings its own.
    random_state : int, default=0
        Seed of everything random. Not used when ``method`` is an estimator.

    Attributes
    ----------
    estimator_ : the fitted method
    method_ : str
        Its name.
    coverage_ : float
    feature_map_ : str
        ``"given"``, ``"learned"`` or ``"constant"``.
    learned_ : LearnedFeatures or None
        None with given features.
    offset_ : Offset or None
        None with given features.
    unanswered_ : float
        Share of the target rows that would get, or get, an infinite threshold with learned features or the
        constant; 0 where these were not tried.
    levels_ : dict of float to (estimator, Offset or None)
        The method at the further levels that `fit` was asked for; see `at`.
    largest_score_ : float
        The largest finite calibration score, in score units (what ``infinite="clip"`` puts for infinity).
    known_ratio_ : bool
        Whether `predict` asks for the known ratios of its rows.
    n_source_ : int
        The number of calibration rows.
    """

    def __init__(
        self,
        method: Any = "lrqr",
        *,
        feature_map: FeatureMap = "auto",
        classify: bool = False,
        coverage: float = 0.9,
        random_state: int | None = 0,
    ) -> None:
        self.method = method
        self.feature_map = feature_map
        self.classify = classify
        self.coverage = coverage
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_target: Any = None,
        X_source: Any = None,
        ratio: LikelihoodRatio | FloatArray | None = None,
        prediction: Any = None,
        prediction_target: Any = None,
        levels: Iterable[float] = (),
    ) -> Self:
        """Fit the feature map and the method.

        Parameters
        ----------
        X : array-like of shape (n1, d)
            Features of the labeled source rows, without a constant column.
        y : array-like of shape (n1,)
            Their scores.
        X_target : array-like of shape (n2, d), optional
            Unlabeled target rows; None means that there is no shift (X itself).
        X_source : array-like of shape (n3, d), optional
            Unlabeled source rows; None means X itself. Learned features do without.
        ratio : LikelihoodRatio or array of shape (n1,), optional
            A likelihood ratio fitted with X as its source, or its known values at the rows of X.
        prediction, prediction_target : array-like of shape (n1, k), (n2, k), optional
            What the user's model says of the rows of X and X_target. Learned features use them if both are
            given, and `predict` then needs those of its rows; given features do not.
        levels : iterable of float, optional
            Further coverages to calibrate at, on the same features and ratios and with the λ and the ridge
            that were chosen for ``coverage``, so that each costs one fit without cross-validation.
        """
        X = as_matrix(X, "X")
        y = as_vector(y, "y", length=X.shape[0])
        if X.shape[0] == 0:
            raise DataError("there is no labeled source row to calibrate on")
        X_target = None if X_target is None else as_matrix(X_target, "X_target", columns=X.shape[1])
        X_source = None if X_source is None else as_matrix(X_source, "X_source", columns=X.shape[1])
        estimator = self._make()
        self.method_ = _name_of(estimator)
        self.coverage_ = check_coverage(estimator.coverage)
        n_target = 0 if X_target is None else len(X_target)
        self.feature_map_ = maps.resolve(
            self.feature_map, estimator, classify=self.classify, n_source=len(X), n_target=n_target
        )
        self.n_source_, self.n_features_in_ = X.shape
        self.largest_score_ = float(y.max())
        self.known_ratio_ = ratio is not None and not hasattr(ratio, "predict")
        self.learned_: LearnedFeatures | None = None
        self.unanswered_ = 0.0
        if self.feature_map_ != "given":
            target, hints = (X, prediction) if X_target is None else (X_target, prediction_target)
            self.unanswered_ = self._fit_learned(
                clone(estimator), X, y, target, ratio, (prediction, hints), levels
            )
            if self.feature_map == "auto" and self.unanswered_ > 1.0 - self.coverage_:
                self.feature_map_, self.learned_ = "given", None
        if self.feature_map_ == "given":

            def calibrate(method: Any, _: float) -> tuple[Any, Offset | None]:
                return method.fit(X, y, X_target=X_target, X_source=X_source, ratio=ratio), None

            self._calibrate(calibrate, estimator, levels)
        return self

    def _fit_learned(
        self,
        estimator: Any,
        X: FloatArray,
        y: FloatArray,
        X_target: FloatArray,
        ratio: Any,
        predictions: tuple[Any, Any],
        levels: Iterable[float],
    ) -> float:
        """Calibrate on few features; return the share of target rows without a finite threshold."""
        both = all(part is not None for part in predictions)
        predict = self.feature_map_ == "learned"
        self.learned_ = learned = LearnedFeatures(predict_score=predict, random_state=self.random_state)
        features, of_target = learned.fit_transform(
            X,
            y,
            X_target,
            prediction=predictions[0] if both else None,
            prediction_target=predictions[1] if both else None,
        )
        source, target = self._shape_features(features), self._shape_features(of_target)
        lighten(estimator, len(source), len(target))
        ratios = as_ratio(ratio, len(y)) if self.known_ratio_ else learned.source_ratio_

        def lift(method: Any, level: float) -> tuple[Any, Offset | None]:
            fitted = method.set_params(coverage=shape_level(level)).fit(source, y, X_target=target)
            return fitted, Offset(y - fitted.predict(source), ratios, level)

        self._calibrate(lift, estimator, levels)
        if self.known_ratio_ or self.offset_ is None:
            return 0.0
        return float(np.isposinf(self.offset_.lift(learned.ratio(of_target))).mean())

    def at(self, level: float) -> Self:
        """Return the model at another coverage, one of those that `fit` was asked for."""
        if level not in self.levels_:
            known = ", ".join(f"{value:g}" for value in self.levels_) or "none"
            raise UsageError(f"the model was not calibrated at {level:g}; its further levels are: {known}")
        other = copy.copy(self)
        other.coverage_, other.levels_ = level, {}
        other.estimator_, other.offset_ = self.levels_[level]
        return other

    def predict(
        self,
        X: Any,
        *,
        ratio: FloatArray | None = None,
        prediction: Any = None,
        infinite: Infinite = "allow",
    ) -> FloatArray:
        """Thresholds of shape (n,), in score units; ``+inf`` where nothing smaller keeps the promise.

        Parameters
        ----------
        X : array-like of shape (n, d)
        ratio : array-like of shape (n,), optional
            The known likelihood ratios of these rows; needed if `fit` was given known ratios.
        prediction : array-like of shape (n, k), optional
            What the user's model says of these rows; needed if `fit` learned from predictions.
        infinite : {"allow", "clip", "error"}, default="allow"
            What to do with ``+inf``: keep it, put the largest finite calibration score, or refuse.
        """
        X = as_matrix(X, "X", columns=self.n_features_in_)
        if X.shape[0] == 0:
            return np.empty(0)
        known = None if ratio is None else as_ratio(ratio, X.shape[0])
        if self.learned_ is None or self.offset_ is None:
            thresholds = np.asarray(self.estimator_.predict(X, ratio=known), dtype=np.float64)
            return cap_infinite(thresholds, infinite, self.largest_score_)
        if self.known_ratio_ != (known is not None):
            raise UsageError(
                "the model was fitted with known ratios: pass ratio= for these rows too"
                if self.known_ratio_
                else "the model was fitted without known ratios: leave ratio= out"
            )
        hints = prediction if self.learned_.n_predictions_ else None
        features = self.learned_.transform(X, prediction=hints)
        weights = self.learned_.ratio(features) if known is None else known
        shape = self.estimator_.predict(self._shape_features(features))
        lift = self.offset_.lift(weights)
        # rounded up by the last bits: h + (S - h) may fall short of S, and ties are covered
        slack = np.where(np.isfinite(lift), _ROUNDING * (np.abs(shape) + np.abs(lift)), 0.0)
        thresholds = np.asarray(shape + lift + slack, dtype=np.float64)
        return cap_infinite(thresholds, infinite, self.largest_score_)

    def to_state(self) -> dict[str, Any]:
        """All that `predict` needs, as JSON values and arrays."""
        return {
            "method": self.method_,
            "feature_map": self.feature_map_,
            "coverage": self.coverage_,
            "largest_score": self.largest_score_,
            "n_source": self.n_source_,
            "n_features": self.n_features_in_,
            "known_ratio": self.known_ratio_,
            "unanswered": self.unanswered_,
            "estimator": self.estimator_.to_state(),
            "learned": None if self.learned_ is None else self.learned_.to_state(),
            "offset": None if self.offset_ is None else self.offset_.to_state(),
            "levels": [
                {
                    "level": level,
                    "estimator": estimator.to_state(),
                    "residuals": None if offset is None else offset.residuals,
                }
                for level, (estimator, offset) in self.levels_.items()
            ],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild the fitted model that `to_state` described."""
        model = cls(state["method"], feature_map=state["feature_map"], coverage=state["coverage"])
        model.method_ = state["method"]
        model.feature_map_ = state["feature_map"]
        model.coverage_ = state["coverage"]
        model.largest_score_ = state["largest_score"]
        model.n_source_ = state["n_source"]
        model.n_features_in_ = state["n_features"]
        model.known_ratio_ = state["known_ratio"]
        model.unanswered_ = state["unanswered"]
        estimator = plugins.load("methods", model.method_).ESTIMATOR
        model.estimator_ = estimator.from_state(state["estimator"])
        model.learned_, model.offset_ = None, None
        if state["learned"] is not None:
            model.learned_ = LearnedFeatures.from_state(state["learned"])
            model.offset_ = Offset.from_state(state["offset"])
        model.levels_ = {}
        for row in state["levels"]:
            own = model.offset_ and replace(model.offset_, residuals=row["residuals"], level=row["level"])
            model.levels_[row["level"]] = (estimator.from_state(row["estimator"]), own)
        return model

    def _calibrate(
        self,
        calibrate: Callable[[Any, float], tuple[Any, Offset | None]],
        estimator: Any,
        levels: Iterable[float],
    ) -> None:
        self.estimator_, self.offset_ = calibrate(estimator, self.coverage_)
        tuned = {
            name: getattr(self.estimator_, f"{name}_")
            for name in ("regularization", "ridge")
            if name in estimator.get_params() and hasattr(self.estimator_, f"{name}_")
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of levels that nobody promised
            self.levels_ = {
                float(level): calibrate(clone(estimator).set_params(coverage=level, **tuned), float(level))
                for level in levels
            }

    def _shape_features(self, features: FloatArray) -> FloatArray:
        """Return what the method sees: learned features as they are, or one that never varies."""
        return features if self.feature_map_ == "learned" else np.zeros((len(features), 1))

    def _make(self) -> Any:
        if not isinstance(self.method, str):
            return clone(self.method)
        estimator = plugins.load("methods", self.method).ESTIMATOR
        return make_estimator(estimator, coverage=self.coverage, random_state=self.random_state)


def make_estimator(estimator: type[Any], **parameters: Any) -> Any:
    """Make an estimator with those of ``parameters`` that it has."""
    known = inspect.signature(estimator).parameters
    return estimator(**{name: value for name, value in parameters.items() if name in known})


def _name_of(estimator: Any) -> str:
    package, _, stem = type(estimator).__module__.rpartition(".")
    if package != "lrqr.methods":
        raise UsageError(
            f"method must be a name or an estimator of lrqr.methods, got {type(estimator).__name__}; "
            f"the names are: {', '.join(plugins.names('methods'))}"
        )
    return stem.replace("_", "-")
