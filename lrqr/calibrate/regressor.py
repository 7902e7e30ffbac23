"""Intervals around any regression model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import RegressorMixin

from lrqr.arrays import as_vector
from lrqr.calibrate.wrapper import ConformalModel

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray
    from lrqr.calibrate.infinity import Infinite
    from lrqr.plugins import FeatureMap


class ConformalRegressor(RegressorMixin, ConformalModel):
    """A regression model whose intervals keep their coverage where the model will be used.

    Parameters
    ----------
    estimator : regressor
        Its ``predict`` returns (n,) for the score ``"absolute"``, (n, 2) lower and upper quantiles for
        ``"cqr"``, (n, 2) prediction and spread for ``"normalized"``. May be a pipeline.
    coverage : float, default=0.9
        The promised share of target outcomes inside the interval, 1-α.
    conformity_score : str, default="absolute"
        How far an outcome is from a prediction: a regression score of ``lrqr.scores``.
    method : str or estimator, default="lrqr"
        How scores become thresholds: a name or an estimator of ``lrqr.methods``.
    prefit : bool, default=False
        True: ``estimator`` is fitted already, on other rows than those passed to `fit`. It need not be
        scikit-learn's: any object with ``predict`` will do.
    calibration_share : float, default=0.5
        Otherwise, the share of the rows of `fit` held out for calibration.
    feature_map : {"auto", "given", "learned", "constant"}, default="auto"
        What the threshold is a function of; see `ThresholdModel`.
    infinite : {"allow", "clip", "error"}, default="allow"
        What to do where no finite interval keeps the promise.
    random_state : int, default=0

    Attributes
    ----------
    estimator_ : the fitted model
    threshold_model_ : ThresholdModel
    n_features_in_ : int

    Notes
    -----
    Preprocessing belongs inside: ``ConformalRegressor(make_pipeline(StandardScaler(), Ridge()))``. As the
    last step of a pipeline this class would see transformed ``X`` but untransformed ``X_target``, which
    cannot be told from a shift.

    Without ``X_target``, and without known ratios, `fit` takes it that there is no shift, whatever the
    method: also ``"lrqr"`` then promises coverage only for rows like those of ``X``.

    ``score`` is the R² of ``estimator``'s predictions, and says nothing of the intervals: it suits a
    `GridSearchCV` over parameters of ``estimator``, not over ``coverage``, ``method``, ``feature_map`` or
    ``conformity_score``, which it does not depend on. Methods are compared by `lrqr.compare`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from lrqr import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(400, 2)), rng.normal(0.5, 1.0, size=(200, 2))
    >>> y = X[:, 0] + (0.3 + abs(X[:, 1])) * rng.normal(size=400)
    >>> model = ConformalRegressor(Ridge(), coverage=0.9).fit(X, y, X_target=X_new)
    >>> model.predict_interval(X_new).shape
    (200, 2)

    With preprocessing, which source and target then pass through alike:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> inside = ConformalRegressor(make_pipeline(StandardScaler(), Ridge()), method="weighted")
    >>> inside.fit(X, y, X_target=X_new).predict_interval(X_new).shape
    (200, 2)
    """

    TASK: ClassVar[str] = "regression"

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float = 0.9,
        conformity_score: str = "absolute",
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

    def predict_interval(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Lower and upper bounds, shape (n, 2); an empty interval is ``(+inf, -inf)``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of these rows, if `fit` was given known ratios.
        """
        bounds: FloatArray = self._region(X, ratio)
        return bounds

    def _output(self) -> str:
        return "predict"

    def _width(self) -> int:
        return len(self._score_module().INPUTS)

    def _check_outcome(self, y: Any) -> None:
        as_vector(y, "y")

    def _outcome(self, y: Any) -> Any:
        return as_vector(y, "y")
