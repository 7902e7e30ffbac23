"""Base learners for experiments: the models whose errors are to be bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lrqr.arrays import FloatArray, IntArray

PENALTIES = tuple(float(value) for value in np.logspace(-3, 4, 15))
_FOLDS = 5


def fit_base(
    name: str, X: FloatArray, y: FloatArray | IntArray, classes: int, seed: int
) -> Callable[[FloatArray], FloatArray]:
    """Fit a base learner; return its prediction function.

    Parameters
    ----------
    name : {"ridge", "hist-gradient-boosting", "logistic"}
    X : (n, d) array
    y : (n,) array
        Outcomes, or class indices if ``classes`` is not 0.
    classes : int
        Number of classes; 0 for regression.
    seed : int

    Returns
    -------
    function
        From features (n, d) to predictions (n, 1), or class probabilities (n, K).
    """
    if classes and name == "ridge":
        raise UsageError(
            'base = "ridge" predicts numbers; for classes use "logistic" or "hist-gradient-boosting"'
        )
    if not classes and name == "logistic":
        raise UsageError(
            'base = "logistic" predicts classes; for numbers use "ridge" or "hist-gradient-boosting"'
        )
    if name == "ridge":
        return fit_ridge(X, np.asarray(y, dtype=np.float64), seed)
    if not classes:
        from sklearn.ensemble import HistGradientBoostingRegressor

        trees = HistGradientBoostingRegressor(random_state=seed).fit(X, y)
        return lambda rows: np.asarray(trees.predict(rows), dtype=np.float64)[:, None]
    return _fit_classifier(name, X, y, classes, seed)


def fit_ridge(X: FloatArray, y: FloatArray, seed: int) -> Callable[[FloatArray], FloatArray]:
    """Ridge regression on standardized features, its penalty tuned by 5-fold cross-validation.

    One eigendecomposition a fold serves all the :data:`PENALTIES`; the smallest squared error wins.
    """
    center, scale = X.mean(axis=0), X.std(axis=0)
    Z = (X - center) / np.where(scale > 0, scale, 1.0)
    fold = np.random.default_rng(seed).permutation(len(y)) % _FOLDS
    errors = np.zeros(len(PENALTIES))
    for k in range(_FOLDS):
        coefficients, intercepts = _ridge_path(Z[fold != k], y[fold != k])
        residuals = y[fold == k, None] - Z[fold == k] @ coefficients - intercepts
        errors += (residuals**2).sum(axis=0)
    best = int(errors.argmin())
    coefficients, intercepts = _ridge_path(Z, y)
    coef = coefficients[:, best] / np.where(scale > 0, scale, 1.0)
    intercept = intercepts[best] - center @ coef

    def predict(rows: FloatArray) -> FloatArray:
        return np.asarray(rows @ coef + intercept)[:, None]

    return predict


def _ridge_path(Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ridge coefficients (d, p) and intercepts (p,) for all penalties."""
    mean, level = Z.mean(axis=0), y.mean()
    centered = Z - mean
    values, vectors = np.linalg.eigh(centered.T @ centered)
    rotated = vectors.T @ (centered.T @ (y - level))
    coefficients = vectors @ (rotated[:, None] / (np.maximum(values, 0.0)[:, None] + np.array(PENALTIES)))
    return coefficients, level - mean @ coefficients


def _fit_classifier(
    name: str, X: FloatArray, y: FloatArray | IntArray, classes: int, seed: int
) -> Callable[[FloatArray], FloatArray]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        if name == "logistic"
        else HistGradientBoostingClassifier(random_state=seed)
    ).fit(X, y)

    def predict(rows: FloatArray) -> FloatArray:
        probability = np.zeros((len(rows), classes))  # classes that training has not seen stay at zero
        probability[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(rows)
        return probability

    return predict
