"""Prediction sets around any classifier that gives probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from lrqr.calibrate.wrapper import ConformalModel
from lrqr.errors import DataError

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray
    from lrqr.calibrate.infinity import Infinite
    from lrqr.plugins import FeatureMap

_SHOWN = 5


class ConformalClassifier(ClassifierMixin, ConformalModel):
    """A classifier whose prediction sets keep their coverage where the model will be used.

    Parameters
    ----------
    estimator : classifier
        Has ``predict_proba``, and ``classes_`` unless its classes are 0 to K-1. May be a pipeline.
    coverage : float, default=0.9
        The promised share of target rows whose class is in the set, 1-α.
    conformity_score : str, default="lac"
        How far a class is from a prediction: a classification score of ``lrqr.scores``.
    method : str or estimator, default="lrqr"
        How scores become thresholds: a name or an estimator of ``lrqr.methods``.
    prefit : bool, default=False
        True: ``estimator`` is fitted already, on other rows than those passed to `fit`. It need not be
        scikit-learn's: any object with ``predict_proba`` will do.
    calibration_share : float, default=0.5
        Otherwise, the share of the rows of `fit` held out for calibration.
    feature_map : {"auto", "given", "learned", "constant"}, default="auto"
        What the threshold is a function of; see `ThresholdModel`.
    infinite : {"allow", "clip", "error"}, default="allow"
        What to do where only the set of all classes keeps the promise.
    random_state : int, default=0

    Attributes
    ----------
    estimator_ : the fitted model
    classes_ : array of shape (K,)
        The classes in the order of the columns of `predict_set`.
    threshold_model_ : ThresholdModel
    n_features_in_ : int

    Notes
    -----
    Preprocessing belongs inside:
    ``ConformalClassifier(make_pipeline(StandardScaler(), LogisticRegression()))``. As the last step of a
    pipeline this class would see transformed ``X`` but untransformed ``X_target``, which cannot be told from
    a shift.

    Without ``X_target``, and without known ratios, `fit` takes it that there is no shift, whatever the
    method: also ``"lrqr"`` then promises coverage only for rows like those of ``X``.

    ``score`` is the accuracy of ``estimator``'s predictions, and says nothing of the sets: it suits a
    `GridSearchCV` over parameters of ``estimator``, not over ``coverage``, ``method``, ``feature_map`` or
    ``conformity_score``, which it does not depend on. Methods are compared by `lrqr.compare`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from lrqr import ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(400, 2)), rng.normal(0.5, 1.0, size=(200, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    >>> model = ConformalClassifier(LogisticRegression(), coverage=0.9).fit(X, y, X_target=X_new)
    >>> model.predict_set(X_new).shape
    (200, 2)

    With preprocessing, which source and target then pass through alike:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> inside = ConformalClassifier(make_pipeline(StandardScaler(), LogisticRegression()), method="weighted")
    >>> inside.fit(X, y, X_target=X_new).predict_set(X_new).shape
    (200, 2)
    """

    TASK: ClassVar[str] = "classification"

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float = 0.9,
        conformity_score: str = "lac",
        method: Any = "lrqr",
        prefit: bool = False,
        calibration_share: float = 0.5,
        feature_map: FeatureMap = "auto",
        infinite: Infinite = "allow",
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.conformity_score = conformity_score
        self.method = method
        self.prefit = prefit
        self.calibration_share = calibration_share
        self.feature_map = feature_map
        self.infinite = infinite
        self.random_state = random_state

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the estimator's own probabilities, shape (n, K)."""
        check_is_fitted(self, "estimator_")
        return self._prediction(X)

    def predict_set(self, X: Any, *, ratio: Any = None) -> BoolArray:
        """Which classes are in each row's set, shape (n, K), columns as in ``classes_``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of these rows, if `fit` was given known ratios.
        """
        inside: BoolArray = self._region(X, ratio)
        return inside

    def _output(self) -> str:
        return "predict_proba"

    def _width(self) -> int:
        return len(self.classes_)

    def _after_model(self, X: Any) -> None:
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = np.asarray(self.estimator_.classes_)
        else:
            self.classes_ = np.arange(self._answer(X).shape[1])

    def _check_outcome(self, y: Any) -> None:
        import pandas as pd

        missing = np.flatnonzero(pd.isna(y))
        if missing.size:
            shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if missing.size > _SHOWN else "")
            raise DataError(
                f"y is missing in {missing.size} of {len(y)} rows (rows {shown}, counted from 0); "
                "drop these rows"
            )
        text = np.array([isinstance(label, str) for label in y.tolist()], dtype=bool)
        if text.any() and not text.all():
            one, other = int(np.argmax(text)), int(np.argmin(text))
            raise DataError(
                f"y mixes texts and other labels: {y[one]!r} in row {one}, {y[other]!r} in row {other} "
                "(counted from 0); make them one type, for example with y.astype(str)"
            )

    def _outcome(self, y: Any) -> Any:
        position = {label: index for index, label in enumerate(self.classes_.tolist())}
        unknown = [row for row, label in enumerate(y.tolist()) if label not in position]
        if unknown:
            raise DataError(
                f"y holds {len(unknown)} label(s) that the model does not know, first {str(y[unknown[0]])!r} "
                f"in row {unknown[0]} (counted from 0); its classes are: {', '.join(map(str, self.classes_))}"
            )
        return np.array([position[label] for label in y.tolist()], dtype=np.int64)
