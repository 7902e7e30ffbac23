"""Built-in base learners, for a user who has labeled data but no model yet.

They take encoded features (n, d) and give what the scores take as ``prediction``: (n, 1) predictions or
(n, K) probabilities. The prediction of a row never depends on the rows beside it, not by one bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit, softmax

from lrqr.arrays import Stored, as_matrix, as_vector, few_threads, one_of, predictor, row_dot
from lrqr.errors import ArtifactError, DataError, UsageError
from lrqr.plugins import BASES, check_choice
from lrqr.stats.folds import deal, deal_folds, together

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

TRAINING_SHARE = 0.5
"""Share of the labeled source rows that fits a base learner; the rest calibrates."""

_PENALTIES = np.logspace(-3, 4, 15)
_FOLDS = 5


class BaseLearner(Stored):
    """A model of the outcome, fitted on rows that will not calibrate.

    Parameters
    ----------
    name : {"ridge", "hist-gradient-boosting", "logistic"}
        ``ridge``: linear regression on standardized features, penalty by 5-fold cross-validation.
        ``logistic``: multinomial logistic regression likewise. ``hist-gradient-boosting``: scikit-learn's
        gradient boosted trees, for numbers or for classes.
    classify : bool
        Whether the outcome is a class.
    random_state : int, default=0

    Attributes
    ----------
    classes_ : list of str
        Labels in the order of the columns of `predict`; empty for regression.
    model_ : fitted scikit-learn estimator
    """

    STATE: ClassVar[dict[str, Any]] = {
        "name": one_of(*BASES),
        "classify": bool,
        "classes_": list[str],
        "model_": predictor(
            "Pipeline", "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", size="d"
        ),
    }

    def __init__(self, name: str, *, classify: bool, random_state: int = 0) -> None:
        check_choice("base learner", name, BASES)
        if name == "ridge" and classify:
            raise UsageError("base learner 'ridge' predicts numbers; for classes use logistic")
        if name == "logistic" and not classify:
            raise UsageError("base learner 'logistic' predicts classes; for numbers use ridge")
        self.name = name
        self.classify = classify
        self.random_state = random_state
        self.classes_: list[str] = []

    @few_threads()
    def fit(self, X: FloatArray, y: Any, groups: Any = None) -> Self:
        """Fit on encoded features (n, d) and outcomes (n,): numbers, or labels of any kind.

        ``groups`` (n,) names clusters of rows, which share a fold where a penalty is chosen, as copies do.
        """
        features = as_matrix(X, "X")
        if self.classify:
            labels = np.asarray([str(label) for label in y])
            self.classes_ = sorted(set(labels.tolist()))
            if len(self.classes_) < 2:
                raise DataError(f"a classifier needs two classes or more, the outcome holds {self.classes_}")
            target: Any = labels
        else:
            target = as_vector(y, "outcome", length=len(features))
        self.model_ = self._fit(features, target, groups)
        return self

    @few_threads()
    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions (n, 1), or probabilities (n, K) with columns as in ``classes_``."""
        features = as_matrix(X, "X")
        if len(features) == 0:
            return np.empty((0, max(1, len(self.classes_))))
        if self.name == "hist-gradient-boosting":
            if self.classify:
                return np.asarray(self.model_.predict_proba(features), dtype=np.float64)
            return np.asarray(self.model_.predict(features), dtype=np.float64)[:, None]
        scaler, linear = self.model_[0], self.model_[1]
        standard = (features - scaler.mean_) / scaler.scale_
        coef, intercept = np.atleast_2d(linear.coef_), np.atleast_1d(linear.intercept_)
        values: FloatArray = np.column_stack([row_dot(standard, row) for row in coef]) + intercept
        if not self.classify:
            return values
        if values.shape[1] == 1:
            return np.column_stack([expit(-values[:, 0]), expit(values[:, 0])])
        probabilities: FloatArray = softmax(values, axis=1)
        return probabilities

    def _complete(self, sizes: dict[str, Any]) -> None:
        self.random_state = 0
        columns = max(1, len(self.classes_))
        try:
            answer = self.predict(np.zeros((1, sizes["d"])))
            right = answer.shape == (1, columns) and np.isfinite(answer).all()
        except Exception as error:  # whatever a changed model makes scikit-learn raise
            raise ArtifactError(f"model does not predict: {error}") from error
        if self.classify != bool(self.classes_) or not right:
            raise ArtifactError(f"model must predict {columns} finite numbers a row, got {answer}")

    def _fit(self, features: FloatArray, target: Any, groups: Any) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from sklearn.linear_model import LogisticRegression, Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if self.name == "hist-gradient-boosting":
            trees = HistGradientBoostingClassifier if self.classify else HistGradientBoostingRegressor
            return trees(early_stopping=False, random_state=self.random_state).fit(features, target)
        linear = LogisticRegression(max_iter=1000) if self.classify else Ridge()
        pipeline = make_pipeline(StandardScaler(), linear)
        pipeline.set_params(**self._penalty(pipeline, features, target, groups))
        return pipeline.fit(features, target)

    def _penalty(self, pipeline: Any, features: FloatArray, target: Any, groups: Any) -> dict[str, float]:
        """Choose the penalty by shuffled cross-validation (a file may be sorted by its outcome)."""
        from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, StratifiedKFold

        fewest = np.unique(target, return_counts=True)[1].min() if self.classify else len(target)
        folds = min(_FOLDS, int(fewest))
        if folds < 2:
            return {}
        codes = np.unique(target, return_inverse=True)[1] if self.classify else target
        held = together(features, codes, clusters=groups)
        if held is not None:
            folds = min(folds, len(np.unique(held)))
            dealt = deal_folds(len(held), folds, self.random_state, held, codes if self.classify else None)
            splits: Any = PredefinedSplit(dealt)
        else:
            kind = StratifiedKFold if self.classify else KFold
            splits = kind(folds, shuffle=True, random_state=self.random_state)
        if not self.classify:
            parts = splits.split(features)
            errors = sum(_ridge_errors(features, target, kept, held) for kept, held in parts)
            return {"ridge__alpha": float(_PENALTIES[np.argmin(errors)])}
        search = GridSearchCV(
            pipeline,
            {"logisticregression__C": 1.0 / _PENALTIES},
            scoring="neg_log_loss",
            cv=splits,
            refit=False,
        ).fit(features, target)
        return {name: float(value) for name, value in search.best_params_.items()}


def _ridge_errors(X: FloatArray, y: FloatArray, kept: IntArray, held: IntArray) -> FloatArray:
    """Mean squared error on the held-out rows for each penalty: one eigendecomposition serves them all."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X[kept])
    Z, level = scaler.transform(X[kept]), y[kept].mean()
    values, vectors = np.linalg.eigh(Z.T @ Z)
    rotated = vectors.T @ (Z.T @ (y[kept] - level))
    shrunk = rotated[:, None] / (np.maximum(values, 0.0)[:, None] + _PENALTIES)
    residuals = y[held, None] - level - scaler.transform(X[held]) @ (vectors @ shrunk)
    errors: FloatArray = np.square(residuals).mean(axis=0)
    return errors


def training_rows(
    n: int,
    random_state: int | None,
    *,
    classes: Any = None,
    share: float = TRAINING_SHARE,
    groups: IntArray | None = None,
) -> BoolArray:
    """Choose which of n rows fit the learner, a boolean mask; at random, the same for the same seed.

    With ``classes`` (the label of each row) every class is divided alike, so that the learner knows them all.
    With ``groups`` (as `lrqr.stats.folds.together` returns them) none of them is divided.
    """
    rng = np.random.default_rng(random_state)
    if groups is not None:
        return np.asarray(deal(groups, np.array([share, 1.0 - share]), rng, classes) == 0)
    mask = np.zeros(n, dtype=np.bool_)
    labels = np.zeros(n, dtype=np.int64) if classes is None else np.unique(classes, return_inverse=True)[1]
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        mask[rows[: max(1, round(share * len(rows)))]] = True
    return mask
