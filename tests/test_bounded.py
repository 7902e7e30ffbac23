"""LR-QR within the bounds of section 4 of the paper, against cvxpy on the problem as it stands."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from scipy import optimize

from lrqr import LRQR
from lrqr.errors import UsageError

FIXED = {"standardize": False, "score_scale": 1.0, "ridge": 0.0, "coverage": 0.9}


def drawn(seed: int, n: int = 60, d: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = np.abs(rng.normal(size=n)) * np.exp(0.4 * X[:, 0])
    return X, scores, rng.normal(size=(40, d)) + np.r_[0.7, np.zeros(d - 1)]


def oracle(
    X: np.ndarray, y: np.ndarray, target: np.ndarray, strength: float, bound: float | None
) -> Callable[[float], float]:
    """Return the function β -> min over ‖γ‖ <= bound of the paper's objective, by a conic program."""
    phi = np.column_stack([np.ones(len(X)), X])
    mean = np.r_[1.0, target.mean(axis=0)]

    def least(beta: float) -> float:
        gamma = cp.Variable(phi.shape[1])
        residual = y - phi @ gamma
        loss = cp.sum(cp.maximum(0.9 * residual, -0.1 * residual)) / len(y)
        pull = beta**2 * cp.sum_squares(phi @ gamma) / len(y) - 2.0 * beta * (mean @ gamma)
        within = [] if bound is None else [cp.norm(gamma) <= bound]
        program = cp.Problem(cp.Minimize(loss + strength * pull), within)
        return float(program.solve(solver="CLARABEL"))

    return least


@pytest.mark.parametrize(
    ("seed", "strength", "bound", "betas"),
    [
        (0, 0.3, 0.8, (0.2, 2.0)),  # both bind or nearly so
        (1, 0.3, None, (1.5, 3.0)),  # β is held up
        (2, 0.1, None, (0.05, 0.2)),  # β is held down
        (3, 1.0, 0.5, (0.7, 0.7)),  # β is given
        (4, 0.5, 50.0, (0.01, 100.0)),  # nothing binds
        (5, 0.0, 0.6, (0.5, 1.0)),  # quantile regression within a ball
    ],
)
def test_the_bounded_minimum_is_that_of_a_conic_program(
    seed: int, strength: float, bound: float | None, betas: tuple[float, float]
) -> None:
    X, y, target = drawn(seed)
    model = LRQR(**FIXED, regularization=strength, largest_norm=bound, beta_range=betas)
    model.fit(X, y, X_target=target)
    gamma = np.r_[model.intercept_, model.coef_]
    assert bound is None or np.linalg.norm(gamma) <= bound * (1.0 + 1e-9)
    assert betas[0] * (1.0 - 1e-9) <= model.beta_ <= betas[1] * (1.0 + 1e-9)
    assert model.converged_
    least = oracle(X, y, target, strength, bound)
    grid = np.geomspace(*betas, 15) if betas[0] < betas[1] else np.array(betas)
    best = int(np.argmin([least(beta) for beta in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    expected = least(float(grid[best]))
    if around[0] < around[1]:
        expected = min(expected, float(optimize.minimize_scalar(least, bounds=around, method="bounded").fun))
    assert model.objective_ == pytest.approx(expected, abs=2e-6)
    assert model.gap_ <= 1e-6


def test_bounds_that_do_not_bind_change_nothing() -> None:
    X, y, target = drawn(6)
    free = LRQR(**FIXED, regularization=0.5).fit(X, y, X_target=target)
    held = LRQR(**FIXED, regularization=0.5, largest_norm=1e3, beta_range=(1e-3, 1e3))
    held.fit(X, y, X_target=target)
    assert held.objective_ == pytest.approx(free.objective_, abs=1e-6)


def test_a_bound_stands_in_for_the_ridge_where_rows_are_few() -> None:
    """Fewer rows than features: unbounded below, except within a ball."""
    X, y, target = drawn(7, n=20, d=30)
    bare = LRQR(**FIXED, regularization=0.5)
    with pytest.raises(UsageError, match="unbounded below"):
        bare.fit(X, y, X_target=target)
    held = LRQR(**FIXED, regularization=0.5, largest_norm=1.0, beta_range=(0.5, 2.0)).fit(
        X, y, X_target=target
    )
    assert np.linalg.norm(np.r_[held.intercept_, held.coef_]) <= 1.0 + 1e-9
    least = oracle(X, y, target, 0.5, 1.0)
    assert held.objective_ <= min(least(beta) for beta in np.geomspace(0.5, 2.0, 7)) + 1e-6


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("largest_norm", 0.0), ("largest_norm", -1.0), ("largest_norm", "x"), ("beta_range", (0.0, 1.0)),
     ("beta_range", (2.0, 1.0)), ("beta_range", (1.0,)), ("beta_range", (1.0, np.inf))],
)  # fmt: skip
def test_bounds_must_make_sense(parameter: str, value: object) -> None:
    X, y, target = drawn(0)
    with pytest.raises(UsageError, match=f"{parameter} must be"):
        LRQR(**FIXED, regularization=0.1, **{parameter: value}).fit(X, y, X_target=target)


def test_every_beta_is_solved_where_the_source_hardly_varies_along_a_direction() -> None:
    """Without the bound the ratio is huge and the solver without it is lost at some β; the bound decides."""
    X, y, target = drawn(8, n=120, d=12)
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    for beta in np.geomspace(0.5, 20.0, 8):
        model = LRQR(**FIXED, regularization=0.07, largest_norm=0.3, beta_range=(beta, beta))
        model.fit(X, y, X_target=target)
        assert model.converged_
        assert np.linalg.norm(np.r_[model.intercept_, model.coef_]) <= 0.3 * (1.0 + 1e-9)
        assert model.objective_ == pytest.approx(oracle(X, y, target, 0.07, 0.3)(float(beta)), rel=1e-5)
