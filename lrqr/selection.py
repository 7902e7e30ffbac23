"""Choose λ and the ridge by cross-validation, without target labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import solvers
from lrqr.errors import UsageError
from lrqr.moments import Moments
from lrqr.problem import Problem
from lrqr.registry import suggest

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

RULES = ("auto", "paper")

_FOLDS = 3
_GRID = 10
# Ridge in pooled-standardized coordinates where none is given.
_RIDGE = 10.0
# Multiple of λ*, and ridge, for two learned features.
_LIGHT = 1.0 / 200.0
_LIGHT_RIDGE = 0.01


def select(
    X: FloatArray,
    scores: FloatArray,
    X_target: FloatArray,
    X_source: FloatArray | None,
    *,
    coverage: float,
    rule: str,
    regularization: float | str,
    ridge: float | str,
    tol: float,
    solver: str,
    random_state: int | None,
) -> tuple[float, float, list[dict[str, Any]]]:
    """Choose what is "auto" and return (ridge, regularization, table).

    The paper's rule (section 5.1 of arXiv:2502.13030): ten equally spaced λ up to
    λ* = n1^(-1/3) (1/n2 + 1/n3)^(-1/3) (eq. 3), 3-fold cross-validation over labeled and target rows,
    smallest mean norm of the gradient of the objective on the held-out fold.

    Parameters
    ----------
    X, scores : ndarray of shape (n1, d), (n1,)
        Labeled source rows, standardized, and their scaled scores.
    X_target : ndarray of shape (n2, d)
    X_source : ndarray of shape (n3, d) or None
        Unlabeled source rows; None = X itself.
    """
    if rule not in RULES:
        raise UsageError(
            f"unknown selection rule {rule!r}{suggest(rule, RULES)}; choose one of: {', '.join(RULES)}"
        )
    chosen_ridge = _RIDGE if isinstance(ridge, str) else float(ridge)
    n1, n2 = len(X), len(X_target)
    n3 = n1 if X_source is None else len(X_source)
    if not isinstance(regularization, str):
        return chosen_ridge, float(regularization), []
    largest = strongest(n1, n2, n3)
    grid = np.linspace(largest / _GRID, largest, _GRID)
    if n1 < _FOLDS or n2 < _FOLDS:
        return chosen_ridge, largest, []
    rng = np.random.default_rng(random_state)
    labeled_fold, target_fold = (rng.permutation(np.arange(size) % _FOLDS) for size in (n1, n2))
    criteria = np.zeros((_FOLDS, _GRID))
    for fold in range(_FOLDS):
        train, test = (
            _problem(X[rows], scores[rows], X_target[chosen], X_source, chosen_ridge, coverage)
            for rows, chosen in (
                (labeled_fold != fold, target_fold != fold),
                (labeled_fold == fold, target_fold == fold),
            )
        )
        for index, solution in enumerate(solvers.path(train, list(grid), solver=solver, tol=tol)):
            held_out = test.with_regularization(float(grid[index]))
            gradient = held_out.gradient(solution.coef, solution.beta)
            in_beta = held_out.gradient_beta(solution.coef, solution.beta)
            criteria[fold, index] = np.hypot(np.linalg.norm(gradient), in_beta)
    mean = criteria.mean(axis=0)
    spread = criteria.std(axis=0, ddof=1) / np.sqrt(_FOLDS)
    best = int(mean.argmin())
    table = [
        {
            "ridge": chosen_ridge,
            "regularization": float(value),
            "criterion": float(mean[index]),
            "standard_error": float(spread[index]),
            "chosen": index == best,
        }
        for index, value in enumerate(grid)
    ]
    return chosen_ridge, float(grid[best]), table


def strongest(n1: int, n2: int, n3: int) -> float:
    """Return λ* of eq. (3) of arXiv:2502.13030 with the constant 1: n1^(-1/3) (1/n2 + 1/n3)^(-1/3)."""
    return float(n1 ** (-1.0 / 3.0) * (1.0 / n2 + 1.0 / n3) ** (-1.0 / 3.0))


def lighten(estimator: Any, n1: int, n2: int) -> None:
    """Give LR-QR on two learned features λ = λ*/200 and a ridge of 0.01, unless told otherwise.

    Two features cannot over-fit, so there is nothing to cross-validate (docs/selection.md).
    """
    light = {"regularization": strongest(n1, n2, n1) * _LIGHT, "ridge": _LIGHT_RIDGE}
    if getattr(estimator, "selection", "") == "auto":
        estimator.set_params(**{k: v for k, v in light.items() if isinstance(getattr(estimator, k), str)})


def _problem(
    X: FloatArray,
    scores: FloatArray,
    X_target: FloatArray,
    X_source: FloatArray | None,
    ridge: float,
    coverage: float,
) -> Problem:
    return Problem(
        features=np.hstack([np.ones((len(X), 1)), X]),
        scores=scores,
        second_moment=Moments.of(X if X_source is None else X_source).augmented_second(ridge),
        target_mean=Moments.of(X_target).augmented_mean(),
        coverage=coverage,
        regularization=0.0,
    )
