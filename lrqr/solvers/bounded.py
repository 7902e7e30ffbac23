"""LR-QR with ‖γ‖ <= B and β_min <= β <= β_max: the problem that the theorems of arXiv:2502.13030 cover.

At fixed β the problem is convex, and the bound on γ is a penalty ν‖γ‖² for the right ν >= 0 (Lagrange). Any ν
and any dual point give a lower bound, so the result carries a certificate as the others do. Over β it is a
search: a logarithmic grid, each local minimum of it refined.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import optimize

from lrqr.arrays import FloatArray
from lrqr.errors import UsageError
from lrqr.solvers.interior import Convex
from lrqr.solvers.problem import Problem, Solution

_GRID = 17
# β beyond this many times 1 / mean |S|, either way, is not looked at unless the bounds ask for it.
_FARTHEST = 1e4
_SHARP = 0.1


@dataclass(frozen=True)
class Bounds:
    """Largest ‖γ‖ (Euclidean, the constant included) and the range of β; None is no bound."""

    norm: float | None = None
    beta: tuple[float, float] | None = None


def solve(problem: Problem, bounds: Bounds, *, tol: float = 1e-6) -> Solution:
    """Minimize F(γ, β), eq. (2) of docs/method.md, within bounds.

    Parameters
    ----------
    problem : Problem
    bounds : Bounds
    tol : float
        Largest duality gap at the β of the solution, relative to the pinball loss.
    """
    size = float(np.abs(problem.scores).mean()) or 1.0
    low, high = bounds.beta or (1.0 / (size * _FARTHEST), _FARTHEST / size)

    @cache
    def at(beta: float) -> Solution:
        return _at(problem, beta, bounds.norm, tol)

    if problem.regularization == 0.0:
        return at(low)
    grid = [float(value) for value in np.geomspace(low, high, _GRID)] if low < high else [low]
    values = [at(beta).objective for beta in grid]
    found = [at(beta) for beta in (grid[0], grid[-1])]
    for index in range(1, len(grid) - 1):
        if values[index] <= min(values[index - 1], values[index + 1]):
            ends = np.log([grid[index - 1], grid[index + 1]])
            best = optimize.minimize_scalar(
                lambda log_beta: at(float(np.exp(log_beta))).objective,
                bounds=ends,
                method="bounded",
                options={"xatol": 1e-5},
            )
            found += [at(grid[index]), at(float(np.exp(best.x)))]
    return min(found, key=lambda one: one.objective)


def _at(problem: Problem, beta: float, norm: float | None, tol: float) -> Solution:
    """Minimize over γ at one β; the penalty ν on ‖γ‖² is the root of ‖γ(ν)‖ = ``norm``."""
    if norm is None:
        return _penalized(problem, beta, 0.0, None, tol)
    tiny = 1e-9 * problem.loss(np.zeros(len(problem.target_mean))) / norm**2
    try:
        free = _penalized(problem, beta, 0.0, norm, tol)
    except UsageError:  # Σ is singular: without the bound there would be no minimum
        free = _penalized(problem, beta, tiny, norm, tol)
    if np.linalg.norm(free.coef) < norm:
        return free

    def excess(log_penalty: float) -> float:
        one = _penalized(problem, beta, float(np.exp(log_penalty)), None, tol)
        return float(np.log(np.linalg.norm(one.coef) / norm)) if one.coef.any() else -1.0

    low = float(np.log(tiny))
    high = low
    while excess(high) > 0.0:
        low, high = high, high + np.log(100.0)
    if low < high:
        high = float(optimize.brentq(excess, low, high, xtol=1e-7, rtol=1e-12))
    return _penalized(problem, beta, float(np.exp(high)), norm, tol)


def _penalized(problem: Problem, beta: float, penalty: float, norm: float | None, tol: float) -> Solution:
    """Minimize F(γ, β) + penalty ‖γ‖² over γ; certify γ, shortened to ``norm``."""
    strength = problem.regularization * beta
    quadratic = strength * beta * problem.second_moment + penalty * np.eye(len(problem.target_mean))
    convex = replace(
        problem,
        second_moment=quadratic,
        target_mean=strength * problem.target_mean,
        regularization=float(quadratic.any()),
    )
    whitened = convex.whiten()
    solver = Convex(whitened, convex.regularization, tol * _SHARP)
    iterate = solver(1.0)
    gamma: FloatArray = np.asarray(whitened.back @ iterate.v, dtype=np.float64)
    length = float(np.linalg.norm(gamma))
    if norm is not None and length > norm:
        gamma = gamma * (norm / length)
    objective = problem.objective(gamma, beta)
    loose = objective + penalty * float(gamma @ gamma) - convex.objective(whitened.back @ iterate.v, 1.0)
    slack = 0.0 if norm is None else penalty * (norm**2 - float(gamma @ gamma))
    gap = max(iterate.gap + loose + slack, 0.0)
    return Solution(
        coef=gamma,
        beta=beta,
        objective=objective,
        gap=gap,
        iterations=solver.steps,
        converged=gap <= tol * max(problem.loss(gamma), 1e-300),
        branch="grid",
        regularization=problem.regularization,
        multipliers=iterate.dual,
    )
