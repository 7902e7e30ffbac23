"""One descent with rows set aside and with all rows; the linear system of a Newton step."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_problem

from lrqr import solvers
from lrqr.solvers import newton
from lrqr.solvers.newton import regularized_solve


@pytest.mark.parametrize("scores", ["normal", "ties", "wide"])
@pytest.mark.parametrize(("n", "d", "ridge"), [(400, 3, 0.1), (300, 60, 0.01), (150, 100, 1e-4)])
def test_setting_rows_aside_changes_no_solution(
    monkeypatch: pytest.MonkeyPatch, scores: str, n: int, d: int, ridge: float
) -> None:
    problem = make_problem(2, n, d, regularization=1.0, ridge=ridge, scores=scores)
    regularizations = [3.0, 0.7, 0.5, 0.3, 0.01]
    found = []
    for large in (np.inf, 0):
        monkeypatch.setattr(newton, "_LARGE", large)
        found.append(solvers.path(problem, regularizations))
    for whole, split in zip(*found, strict=True):
        assert split.converged
        assert split.objective == pytest.approx(whole.objective, rel=1e-6)
        # the certificate is that of all rows
        task = problem.with_regularization(split.regularization)
        gap = task.gap(split.coef, split.beta, split.multipliers)
        assert split.gap == pytest.approx(gap, rel=1e-3, abs=1e-10 * problem.scores.max())


def test_few_rows_left_without_a_minimum_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more features than rows near interpolation F can be unbounded until the others are looked at."""
    monkeypatch.setattr(newton, "_LARGE", 0)
    monkeypatch.setattr(newton, "_FAR", 0.2)
    problem = make_problem(5, 200, 80, regularization=0.3, ridge=0.01)
    solution = solvers.path(problem, [0.3])[0]
    assert solution.converged
    assert solution.objective == pytest.approx(solvers.solve(problem, solver="interior").objective, rel=1e-6)


@pytest.mark.parametrize("count", [0, 1, 5, 12, 40])
def test_the_linear_system_of_a_step(count: int) -> None:
    rng = np.random.default_rng(count)
    rows, right = rng.normal(size=(count, 12)), rng.normal(size=(12, 2))
    expected = np.linalg.solve(0.3 * np.eye(12) + rows.T @ rows / 7.0, right)
    np.testing.assert_allclose(regularized_solve(rows, 7.0, 0.3, right), expected, rtol=1e-9)
