"""What the regressor and the classifier share: splitting, encoding, calibrating."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from lrqr import plugins
from lrqr.arrays import as_matrix, check_seed
from lrqr.calibrate.promise import few_rows_warning, overlap_warning
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.methods.estimator import check_coverage

if TYPE_CHECKING:
    from types import ModuleType

    from lrqr.arrays import FloatArray
    from lrqr.calibrate.infinity import Infinite
    from lrqr.plugins import FeatureMap


class ConformalModel(MetaEstimatorMixin, BaseEstimator):
    """Base of `ConformalRegressor` and `ConformalClassifier`."""

    TASK: ClassVar[str]

    estimator: Any
    coverage: float
    conformity_score: str
    method: Any
    prefit: bool
    calibration_share: float
    feature_map: FeatureMap
    infinite: Infinite
    random_state: int | None

    def fit(self, X: Any, y: Any, *, X_target: Any = None, X_source: Any = None, ratio: Any = None) -> Self:
        """Fit the model on one part of the rows (unless ``prefit``) and calibrate it on the other.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Features of labeled source rows. With ``prefit=True`` all of them calibrate, so they must not be
            rows that ``estimator`` was fitted on.
        y : array-like of shape (n,)
        X_target : array-like or data frame of shape (n2, d), optional
            Unlabeled rows from where the model will be used. None means that there is no shift.
        X_source : array-like or data frame of shape (n3, d), optional
            Further unlabeled source rows. None means the calibration rows themselves.
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of the rows of ``X``, for the methods that weigh rows.

        Warns
        -----
        LrqrWarning
            If there are too few calibration rows for the coverage, or more than α of the rows of ``X_target``
            lie where the source cannot support a finite threshold.
        """
        # before anything is fitted, and with the user's number: methods are fitted at other levels too
        check_coverage(
            self.coverage if isinstance(self.method, str) else getattr(self.method, "coverage", self.coverage)
        )
        check_seed(self.random_state)
        module = self._score_module()
        if not hasattr(self.estimator, self._output()):
            raise UsageError(
                f"{type(self).__name__} with score {self.conformity_score!r} needs an estimator with "
                f"{self._output()}(); {type(self.estimator).__name__} has none"
            )
        if not self.prefit and not hasattr(self.estimator, "fit"):
            raise UsageError(
                f"{type(self.estimator).__name__} has no fit(): if it is fitted already, pass prefit=True"
            )
        y = np.asarray(y)
        if y.ndim != 1 or len(y) != _rows(X):
            raise DataError(f"y must have one value per row of X: shape {y.shape} for {_rows(X)} rows")
        self._check_outcome(y)
        weights = None if ratio is None else np.asarray(ratio, dtype=np.float64)
        if self.prefit:
            if isinstance(self.estimator, BaseEstimator):  # others need not have scikit-learn's marks
                check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
        else:
            train, calibrate = self._split(y)
            self.estimator_ = clone(self.estimator).fit(_take(X, train), y[train])
            X, y = _take(X, calibrate), y[calibrate]
            weights = None if weights is None else weights[calibrate]
        self.n_features_in_ = _columns(X)
        self._encoder = _encoder(X, X_target)
        named = getattr(self.estimator_, "feature_names_in_", X.columns) if self._encoder is not None else []
        self._columns = list(named)
        self._after_model(X)
        features = self._features(X, "X")
        prediction = self._prediction(X)
        scores = module.score(prediction, self._outcome(y))
        target = None if X_target is None else self._features(X_target, "X_target")
        self.threshold_model_ = ThresholdModel(
            self.method,
            feature_map=self.feature_map,
            classify=self.TASK == "classification",
            coverage=self.coverage,
            random_state=self.random_state,
        ).fit(
            features,
            scores,
            X_target=target,
            X_source=None if X_source is None else self._features(X_source, "X_source"),
            ratio=weights,
            prediction=prediction,
            prediction_target=None if X_target is None else self._prediction(X_target),
        )
        few = few_rows_warning(self.threshold_model_)
        apart = None if target is None else overlap_warning(self.threshold_model_, target)
        for message in (few, apart):
            if message is not None:
                warnings.warn(message, LrqrWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> Any:
        """Return the estimator's own predictions, shape (n,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(self._ordered(X))

    def predict_threshold(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Thresholds of shape (n,), in score units.

        ``ratio`` holds the known likelihood ratios of these rows, if `fit` was given known ratios.
        """
        check_is_fitted(self, "threshold_model_")
        features = self._features(X, "X")
        hints = None if self.threshold_model_.learned_ is None else self._prediction(X)
        return self.threshold_model_.predict(features, ratio=ratio, prediction=hints, infinite=self.infinite)

    def _region(self, X: Any, ratio: Any) -> Any:
        threshold = self.predict_threshold(X, ratio=ratio)
        return self._score_module().region(self._prediction(X), threshold)

    def _score_module(self) -> ModuleType:
        module = plugins.load("scores", self.conformity_score)
        if module.TASK != self.TASK:
            raise UsageError(
                f"score {self.conformity_score!r} is for {module.TASK}, not for {self.TASK}; "
                f"choose one of: {', '.join(scores_for(self.TASK))}"
            )
        return module

    def _split(self, y: Any) -> tuple[Any, Any]:
        if not 0.0 < self.calibration_share < 1.0:
            raise UsageError(f"calibration_share must lie between 0 and 1, got {self.calibration_share}")
        if len(y) < 2:
            raise DataError(f"{len(y)} rows cannot be split into a part to fit and a part to calibrate on")
        parts: tuple[Any, Any] = train_test_split(
            np.arange(len(y)), test_size=self.calibration_share, random_state=self.random_state
        )
        return parts

    def _features(self, X: Any, name: str) -> FloatArray:
        if self._encoder is None:
            return as_matrix(X, name, columns=self.n_features_in_)
        try:
            features: FloatArray = self._encoder.transform(_to_pandas(X))
        except DataError as error:
            raise _without_options(error, name) from error
        return features

    def _prediction(self, X: Any) -> FloatArray:
        """Return the model's output of shape (n, k), also for no rows at all."""
        if _rows(X) == 0:
            return np.empty((0, self._width()))
        matrix = self._answer(X)
        if matrix.shape[1] != self._width():
            raise DataError(
                f"score {self.conformity_score!r} needs {self._width()} column(s) from {self._output()}(), "
                f"got {matrix.shape[1]}"
            )
        return matrix

    def _answer(self, X: Any) -> FloatArray:
        """Return what the model says of rows, one or more, as it says it: shape (n, k)."""
        output = np.asarray(getattr(self.estimator_, self._output())(self._ordered(X)), dtype=np.float64)
        matrix: FloatArray = output[:, None] if output.ndim == 1 else output
        return matrix

    def _ordered(self, X: Any) -> Any:
        """Return the columns of a data frame as they were at fit: by name, in that order."""
        if self._encoder is None or not _is_frame(X):
            return X
        missing = [name for name in self._columns if name not in list(X.columns)]
        if missing:
            raise DataError(f"X lacks the columns {', '.join(map(str, missing))}")
        return X[self._columns]

    def _output(self) -> str:
        raise NotImplementedError

    def _width(self) -> int:
        raise NotImplementedError

    def _after_model(self, X: Any) -> None:
        """Learn from the fitted model what calibration needs."""

    def _check_outcome(self, y: Any) -> None:
        """Raise where no model can be fitted on these outcomes (n,)."""
        raise NotImplementedError

    def _outcome(self, y: Any) -> Any:
        raise NotImplementedError


def scores_for(task: str) -> tuple[str, ...]:
    """Names of the scores for a task, ``"regression"`` or ``"classification"``."""
    return tuple(name for name in plugins.names("scores") if task == plugins.load("scores", name).TASK)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def _to_pandas(X: Any) -> Any:
    import pandas as pd

    if not _is_frame(X):
        raise DataError("the model was fitted on a data frame: pass a data frame with the same column names")
    return (
        X if isinstance(X, pd.DataFrame) else pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
    )


def _encoder(X: Any, X_target: Any) -> Any:
    """Match frames by column name and encode their categories; plain arrays are taken as they are."""
    if not _is_frame(X):
        return None
    from lrqr.data.encoder import TableEncoder

    source = _to_pandas(X)
    try:
        return TableEncoder().fit(source, source if X_target is None else _to_pandas(X_target))
    except DataError as error:
        raise _without_options(error, "X and X_target") from error


def _without_options(error: DataError, name: str) -> DataError:
    """Return what an encoder says, with advice for Python in place of options of the command."""
    fact, _, advice = str(error).rpartition("; ")
    if " --" not in advice:
        return DataError(f"{name}: {error}")
    missing = "--on-missing" in advice
    return DataError(
        f"{name}: {fact}; "
        + ("drop or impute these rows" if missing else "correct these values, convert them or leave them out")
    )


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _columns(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])


def _take(X: Any, rows: Any) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]
