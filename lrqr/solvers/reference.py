"""The oracle: cvxpy with Clarabel for the convex part, inside a global search over β.

Slow on purpose and independent of our own algebra: it works on eq. (2) as it stands. Tests judge every
other solver against it.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lrqr.arrays import FloatArray
from lrqr.errors import UsageError
from lrqr.solvers.problem import Problem, Solution

_GOLDEN = (5.0**0.5 - 1.0) / 2.0


def solve(problem: Problem, *, tol: float = 1e-6, grid: int = 25) -> Solution:
    """Minimize F over γ and β > 0: a logarithmic grid of β, each local minimum of it refined.

    Parameters
    ----------
    problem : Problem
    tol : float
        Largest gap, relative to the pinball loss, that counts as converged.
    grid : int
        Points of the grid of β, over eight powers of ten around 1 / mean |S|.
    """
    convex = ConvexPart(problem)
    if problem.regularization == 0.0:
        return _solution(problem, *convex(0.0), None, 1, tol)
    size = float(np.abs(problem.scores).mean()) or 1.0
    points = np.logspace(-4.0, 4.0, grid) / size
    values = [convex.value(point) for point in points]
    calls = [len(points)]

    def value(log_beta: float) -> float:
        calls[0] += 1
        return convex.value(float(np.exp(log_beta)))

    best = (np.inf, 1.0 / size)
    for index in range(grid):
        left, right = max(index - 1, 0), min(index + 1, grid - 1)
        if values[index] <= min(values[left], values[right]):
            best = min(best, _golden(value, np.log(points[left]), np.log(points[right])))
    beta = best[1]
    return _solution(problem, *convex(beta), beta, calls[0], tol)


class ConvexPart:
    """min over γ of F(γ, β), built once and solved for any β (and any λ, through β and λ alone)."""

    def __init__(self, problem: Problem) -> None:
        cp = _cvxpy()
        n, p = problem.features.shape
        self._problem = problem
        values, vectors = np.linalg.eigh(problem.second_moment)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        self._gamma = cp.Variable(p)
        self._strength = cp.Parameter(nonneg=True)
        self._linear = cp.Parameter(p)
        residuals = problem.scores - problem.features @ self._gamma
        above, below = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
        self._balance = residuals == above - below
        loss = (problem.coverage * cp.sum(above) + (1.0 - problem.coverage) * cp.sum(below)) / n
        penalty = self._strength * cp.sum_squares(root @ self._gamma) - self._linear @ self._gamma
        self._program: Any = cp.Problem(cp.Minimize(loss + penalty), [self._balance])

    def __call__(self, beta: float) -> tuple[FloatArray, FloatArray]:
        """Return γ and the dual values of the rows at this β."""
        self._strength.value = self._problem.regularization * beta * beta
        self._linear.value = 2.0 * self._problem.regularization * beta * self._problem.target_mean
        accuracy: dict[str, Any] = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
        with warnings.catch_warnings():
            # Where that much cannot be had, "may be inaccurate" is for the gap to judge.
            warnings.simplefilter("ignore", UserWarning)
            self._program.solve(solver="CLARABEL", **accuracy)
        if self._gamma.value is None:
            raise UsageError(f"the reference solver found no solution at beta={beta}: {self._program.status}")
        n = len(self._problem.scores)
        dual = np.clip(
            n * np.asarray(self._balance.dual_value), self._problem.coverage - 1.0, self._problem.coverage
        )
        return np.asarray(self._gamma.value, dtype=np.float64), dual

    def value(self, beta: float) -> float:
        """Return min over γ of F(γ, β)."""
        gamma, _ = self(beta)
        return self._problem.objective(gamma, beta)


def _cvxpy() -> Any:
    """Import cvxpy: large, slow to import, of use to this solver alone, hence an extra of the package."""
    try:
        import cvxpy
    except ImportError as error:
        raise UsageError(
            "solver='reference' needs cvxpy with Clarabel, which a plain installation leaves out; "
            f"install them with: pip install 'lrqr[reference]' (import failed: {error})"
        ) from error
    return cvxpy


def _golden(value: Callable[[float], float], left: float, right: float) -> tuple[float, float]:
    """Golden-section search of log β; return the smallest value met and its β."""
    inner = [right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)]
    values = [value(point) for point in inner]
    while right - left > 1e-5:
        if values[0] <= values[1]:
            right = inner[1]
            inner = [right - _GOLDEN * (right - left), inner[0]]
            values = [value(inner[0]), values[0]]
        else:
            left = inner[0]
            inner = [inner[1], left + _GOLDEN * (right - left)]
            values = [values[1], value(inner[1])]
    best = int(np.argmin(values))
    return values[best], float(np.exp(inner[best]))


def _solution(
    problem: Problem, gamma: FloatArray, dual: FloatArray, beta: float | None, calls: int, tol: float
) -> Solution:
    chosen = problem.best_beta(gamma) if beta is None else beta
    gap = max(problem.gap(gamma, chosen, dual), 0.0)
    return Solution(
        coef=gamma,
        beta=chosen,
        objective=problem.objective(gamma, chosen),
        gap=gap,
        iterations=calls,
        converged=gap <= tol * max(problem.loss(gamma), 1e-300),
        branch="grid",
        regularization=problem.regularization,
        multipliers=dual,
    )
