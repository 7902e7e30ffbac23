"""Choose λ and the ridge of LR-QR by cross-validation, without target labels.

docs/selection.md has the evidence for the rules, and says which to use when.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lrqr import solvers
from lrqr.arrays import FloatArray
from lrqr.plugins import check_choice
from lrqr.solvers.problem import Problem
from lrqr.stats.folds import fold_rows, together
from lrqr.stats.moments import Moments
from lrqr.stats.ratio import LikelihoodRatio

RULES = ("auto", "paper")

_FOLDS = 3
# "paper": ten equally spaced λ up to λ*; the paper has no ridge, ours is in pooled-standardized coordinates.
_PAPER_GRID = 10
_PAPER_RIDGE = 10.0
# "auto": further down, where d is large, the global minimum over β jumps to a branch with little coverage
_RIDGES = (10.0, 100.0, 1000.0)
_MULTIPLES = (1.0, 0.3, 0.1)
# What "auto" takes where there is nothing to cross-validate.
_FALLBACK = (100.0, 0.1)
# Multiple of λ*, and ridge, for the two learned features.
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
    groups: Any = None,
) -> tuple[float, float, list[dict[str, Any]]]:
    """Choose what is "auto" and return (ridge, regularization, table).

    Both rules cross-validate over three folds of the labeled and the target rows and take the pair with the
    smallest criterion, averaged over the folds; λ* is that of :func:`strongest`.

    ``auto``
        The pinball loss of held-out labeled rows, weighted by a cross-fitted logistic likelihood ratio: an
        estimate of the target's pinball loss. Ridge 10, 100 or 1000, λ = λ*, 0.3 λ* or 0.1 λ*.
    ``paper``
        The norm of the gradient of the objective on the held-out fold, ten equally spaced λ up to λ*
        (section 5.1 of arXiv:2502.13030). The paper has no ridge; ours is 10 unless given.

    Parameters
    ----------
    X, scores : ndarray of shape (n1, d), (n1,)
        Labeled source rows, standardized, and their scaled scores.
    X_target : ndarray of shape (n2, d)
    X_source : ndarray of shape (n3, d) or None
        Unlabeled source rows; None = X itself. Where given, they are not split: Σ is the same in all folds.
    coverage : float
    rule : str
        One of :data:`RULES`.
    regularization, ridge : float or "auto"
        A number is kept.
    tol : float
        Of the solver, relative duality gap.
    solver : str
    random_state : int or None
        Seed of the folds and of the ratio.
    groups : ndarray of shape (n1,), optional
        Clusters of labeled rows, which share a fold, as copies do.

    Returns
    -------
    ridge, regularization : float
    table : list of dict
        One row per pair: ``ridge``, ``regularization``, ``criterion``, ``standard_error`` (of the criterion's
        difference to the smallest, over rows, for "auto"; of the criterion, over folds, for "paper"),
        ``chosen``. Empty when nothing was cross-validated.
    """
    n1, n2 = len(X), len(X_target)
    largest = strongest(n1, n2, n1 if X_source is None else len(X_source))
    ridges, grid = _candidates(rule, regularization, ridge, largest)
    if len(ridges) * len(grid) == 1:
        return ridges[0], grid[0], []
    check_choice("selection rule", rule, RULES)
    seed = random_state or 0
    folds = (
        fold_rows((X, scores), _FOLDS, seed, together(X, scores, other=X_target, clusters=groups)),
        fold_rows((X_target,), _FOLDS, seed, together(X_target, other=X)),
    )
    # too few rows that stand apart; without a column, all candidates give one quantile
    if min(len(np.unique(fold)) for fold in folds) < _FOLDS or not X.shape[1]:
        fallback = (_PAPER_RIDGE, 1.0) if rule == "paper" else _FALLBACK
        return (
            fallback[0] if isinstance(ridge, str) else float(ridge),
            fallback[1] * largest if isinstance(regularization, str) else float(regularization),
            [],
        )
    norms = np.empty((_FOLDS, len(ridges), len(grid)))
    losses = np.empty((n1, len(ridges), len(grid)))
    for fold in range(_FOLDS):
        inside, target_inside = folds[0] != fold, folds[1] != fold
        bare = problem(X[inside], scores[inside], X_target[target_inside], X_source, 0.0, coverage)
        bare_held = problem(X[~inside], scores[~inside], X_target[~target_inside], X_source, 0.0, coverage)
        for i, value in enumerate(ridges):
            fitted, held = _with_ridge(bare, value), _with_ridge(bare_held, value)
            for j, solution in enumerate(solvers.path(fitted, grid, solver=solver, tol=tol)):
                held_out = held.with_regularization(grid[j])
                norms[fold, i, j] = _gradient_norm(held_out, solution)
                losses[~inside, i, j] = _pinball(held_out, solution)
    if rule == "paper":
        mean = norms.mean(axis=0)
        best = divmod(int(_finite(mean).argmin()), len(grid))
        return _table(mean, norms.std(axis=0, ddof=1) / np.sqrt(_FOLDS), best, ridges, grid)
    mean, spread = _compare(losses, _weights(X, X_target, seed, groups))
    near = np.argwhere(mean - mean.min() <= spread)
    best = min(((int(i), int(j)) for i, j in near), key=lambda pair: (ridges[pair[0]], -grid[pair[1]]))
    return _table(mean, spread, best, ridges, grid)


def strongest(n1: int, n2: int, n3: int) -> float:
    """Return λ* of eq. (3) of arXiv:2502.13030 with the constant 1: n1^(-1/3) (1/n2 + 1/n3)^(-1/3).

    Examples
    --------
    >>> round(strongest(600, 300, 600), 3)
    0.693
    """
    return float(n1 ** (-1.0 / 3.0) * (1.0 / n2 + 1.0 / n3) ** (-1.0 / 3.0))


def problem(
    X: FloatArray,
    scores: FloatArray,
    X_target: FloatArray,
    X_source: FloatArray | None,
    ridge: float,
    coverage: float,
    regularization: float = 0.0,
) -> Problem:
    """Return the LR-QR problem of rows without the constant; ``X_source`` None means X itself."""
    return Problem(
        features=np.hstack([np.ones((len(X), 1)), X]),
        scores=scores,
        second_moment=Moments.of(X if X_source is None else X_source).augmented_second(ridge),
        target_mean=np.concatenate([[1.0], np.ascontiguousarray(X_target).mean(axis=0)]),
        coverage=coverage,
        regularization=regularization,
    )


def _with_ridge(task: Problem, ridge: float) -> Problem:
    """Return a problem that has no ridge yet with one: the moments of its rows need not be taken again."""
    second = task.second_moment.copy()
    second.flat[len(second) + 1 :: len(second) + 1] += ridge
    return replace(task, second_moment=second)


def lighten(estimator: Any, n1: int, n2: int) -> None:
    """Give LR-QR on two learned features λ = λ*/200 and a ridge of 0.01, unless told otherwise.

    Two features cannot over-fit, so there is nothing to cross-validate (docs/selection.md).
    """
    light = {"regularization": strongest(n1, n2, n1) * _LIGHT, "ridge": _LIGHT_RIDGE}
    if getattr(estimator, "selection", "") == "auto":
        estimator.set_params(**{k: v for k, v in light.items() if isinstance(getattr(estimator, k), str)})


def _candidates(
    rule: str, regularization: float | str, ridge: float | str, largest: float
) -> tuple[list[float], list[float]]:
    """Return the ridges, and the λ in the order of the path, among which to choose."""
    if rule == "paper":
        ridges = [_PAPER_RIDGE]
        grid = [float(value) for value in np.linspace(largest / _PAPER_GRID, largest, _PAPER_GRID)]
    else:
        ridges, grid = list(_RIDGES), [multiple * largest for multiple in _MULTIPLES]
    return (
        ridges if isinstance(ridge, str) else [float(ridge)],
        grid if isinstance(regularization, str) else [float(regularization)],
    )


def _weights(X: FloatArray, X_target: FloatArray, seed: int, groups: Any) -> FloatArray:
    """Return the out-of-fold likelihood ratio (n1,) of the labeled rows; 1 where the target is the source."""
    if X.shape == X_target.shape and np.array_equal(X, X_target):
        return np.ones(len(X))
    return LikelihoodRatio(random_state=seed).fit(X, X_target, groups=groups).source_


def _pinball(held_out: Problem, solution: solvers.Solution) -> FloatArray:
    """Return the pinball losses of the held-out rows."""
    residual = held_out.scores - held_out.features @ solution.coef
    return np.maximum(held_out.coverage * residual, (held_out.coverage - 1.0) * residual)


def _compare(losses: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted means (ridges, λ) of losses (n1, ridges, λ), and the errors of their differences.

    The second is the standard error of each mean's difference to the smallest, which is 0 for that one.
    """
    if weights.sum() <= 0.0:
        weights = np.ones_like(weights)
    share = weights / weights.sum()
    mean = _finite(np.tensordot(share, losses, axes=1))
    best = losses.reshape(len(losses), -1)[:, int(mean.argmin())]
    gaps = losses - best[:, None, None]
    centered = share[:, None, None] * (gaps - np.tensordot(share, gaps, axes=1))
    return mean, np.sqrt(np.square(centered).sum(axis=0))


def _finite(criterion: FloatArray) -> FloatArray:
    """Put infinity where a fit went wrong."""
    return np.where(np.isfinite(criterion), criterion, np.inf)


def _gradient_norm(held_out: Problem, solution: solvers.Solution) -> float:
    """Return the Euclidean norm of the gradient in (γ, β) of the held-out objective."""
    gradient = held_out.gradient(solution.coef, solution.beta)
    return float(np.hypot(np.linalg.norm(gradient), held_out.gradient_beta(solution.coef, solution.beta)))


def _table(
    mean: FloatArray,
    spread: FloatArray,
    best: tuple[int, int],
    ridges: Sequence[float],
    grid: Sequence[float],
) -> tuple[float, float, list[dict[str, Any]]]:
    """Return the chosen ridge and λ, and the table of criteria (ridges, λ)."""
    table = [
        {
            "ridge": ridges[i],
            "regularization": grid[j],
            "criterion": float(mean[i, j]),
            "standard_error": float(spread[i, j]),
            "chosen": (i, j) == best,
        }
        for i in range(len(ridges))
        for j in range(len(grid))
    ]
    return ridges[best[0]], grid[best[1]], table
