"""LR-QR with ‖γ‖ <= B and β_min <= β <= β_max: the problem that the theorems of arXiv:2502.13030 cover.

At fixed β the problem is convex, and the bound on γ is a penalty ν‖γ‖² for the right ν >= 0 (Lagrange). Any ν
and any dual point give a lower bound, so the result carries a certificate as the others do. Over β it is a
search: a logarithmic grid, and where the slope turns from falling to rising, its root.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import optimize

from lrqr.arrays import FloatArray
from lrqr.errors import UsageError
from lrqr.solvers.interior import Convex
from lrqr.solvers.problem import Problem, Solution

_GRID = 13
# log ν below which the bound on γ does not bind.
_LOWEST = -50.0
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

    guess = [1e-9 * problem.loss(np.zeros(len(problem.target_mean))) / (bounds.norm or 1.0) ** 2]

    @cache
    def at(log_beta: float) -> Solution:
        found, guess[0] = _at(problem, float(np.exp(log_beta)), bounds.norm, guess[0], tol)
        return found

    def slope(log_beta: float) -> float:
        # by the envelope theorem; the bound on γ does not depend on β
        return problem.gradient_beta(at(log_beta).coef, at(log_beta).beta)

    ends = np.log([low, high])
    grid = (
        [float(value) for value in np.linspace(ends[0], ends[1], _GRID)] if low < high else [float(ends[0])]
    )
    if problem.regularization == 0.0:
        return at(grid[0])
    found = [at(grid[0]), at(grid[-1])]
    for left, right in itertools.pairwise(grid):
        if slope(left) < 0.0 <= slope(right):
            found.append(at(float(optimize.brentq(slope, left, right, xtol=1e-6))))
    return min(found, key=lambda one: one.objective)


def _at(
    problem: Problem, beta: float, norm: float | None, guess: float, tol: float
) -> tuple[Solution, float]:
    """Minimize over γ at one β; the penalty ν on ‖γ‖² is the root of ‖γ(ν)‖ = ``norm``. Returns ν, too."""
    if norm is None:
        return _penalized(problem, beta, 0.0, None, tol), guess
    try:
        free = _penalized(problem, beta, 0.0, norm, tol)
        if free.converged and np.linalg.norm(free.coef) < norm:
            return free, guess
    except UsageError:  # Σ is singular: without the bound there would be no minimum
        pass

    @cache
    def excess(log_penalty: float) -> float:
        one = _penalized(problem, beta, float(np.exp(log_penalty)), None, tol)
        return float(np.log(np.linalg.norm(one.coef) / norm)) if one.coef.any() else -1.0

    low = high = float(np.log(guess))
    step = 0.5
    while excess(high) > 0.0:
        low, high, step = high, high + step, 2.0 * step
    while excess(low) <= 0.0 and low > _LOWEST:
        low, high, step = low - step, low, 2.0 * step
    if low < high and excess(low) > 0.0:
        high = float(optimize.brentq(excess, low, high, xtol=1e-7))
    return _penalized(problem, beta, float(np.exp(high)), norm, tol), float(np.exp(high))


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
