"""Solvers of the LR-QR problem, one file each, behind one function."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lrqr import plugins
from lrqr.arrays import few_threads
from lrqr.errors import UsageError
from lrqr.solvers import bounded
from lrqr.solvers.problem import Problem, Solution

__all__ = ["Solution", "path", "solve"]

SHARED = ("bounded", "problem")
"""Files of this package that are not solvers."""

# A gap below this share of the largest score is rounding.
_ROUNDING = 1e-12


def solve(
    problem: Problem,
    *,
    solver: str = "newton",
    tol: float = 1e-6,
    bounds: bounded.Bounds = bounded.Bounds(),  # noqa: B008 - frozen
) -> Solution:
    """Minimize F(γ, β), eq. (2) of docs/method.md, with a certificate.

    Parameters
    ----------
    problem : Problem
    solver : str
        A file of this package: "newton" (ours), "interior", "reference" (cvxpy, slow).
    tol : float
        Largest duality gap, relative to the pinball loss.
    bounds : Bounds
        Of ‖γ‖ and β. With any, `bounded.solve` takes the place of ``solver``.
    """
    module = _module(solver, tol)
    with few_threads(_work(problem)):
        if bounds.norm is not None or bounds.beta is not None:
            return bounded.solve(problem, bounds, tol=tol)
        if problem.regularization == 0.0 and solver == "newton":
            found = _interior(problem, tol)
        else:
            found = _rescue(problem, module.solve(problem, tol=tol), solver, tol)
        return _judged(problem, [found], tol)[0]


def path(
    problem: Problem, regularizations: Sequence[float], *, solver: str = "newton", tol: float = 1e-6
) -> list[Solution]:
    """Minimize F for several λ.

    With "newton" this costs little more than one λ, because each solution starts the next; unlike `solve` it
    does not look for a better β elsewhere.

    Parameters
    ----------
    problem : Problem
        Its own λ does not matter.
    regularizations : sequence of float
        λ >= 0 in any order; the solutions come back in that order.
    solver, tol
        As for ``solve``.
    """
    module = _module(solver, tol)
    if not hasattr(module, "path"):
        found = [module.solve(problem.with_regularization(value), tol=tol) for value in regularizations]
        return _judged(problem, found, tol)
    with few_threads(_work(problem)):
        return _path(problem, regularizations, solver, tol)


def _path(problem: Problem, regularizations: Sequence[float], solver: str, tol: float) -> list[Solution]:
    """Solve along a path with a solver that can."""
    module = _module(solver, tol)
    positive = sorted({float(value) for value in regularizations if value != 0.0})
    solutions = dict(zip(positive, module.path(problem, positive, tol=tol), strict=True)) if positive else {}
    solutions = {
        value: _rescue(problem.with_regularization(value), solution, solver, tol)
        for value, solution in solutions.items()
    }
    if len(positive) < len(set(regularizations)):
        solutions[0.0] = _interior(problem.with_regularization(0.0), tol)
    return _judged(problem, [solutions[float(value)] for value in regularizations], tol)


def _work(problem: Problem) -> float:
    """Return the multiplications of a Gram matrix."""
    return float(problem.features.size) * float(problem.features.shape[1])


def _module(solver: str, tol: float) -> Any:
    if not tol > 0.0:
        raise UsageError(f"tol must be positive, got {tol}")
    return plugins.load("solvers", solver)


def _interior(problem: Problem, tol: float) -> Solution:
    solution: Solution = plugins.load("solvers", "interior").solve(problem, tol=tol)
    return solution


def _rescue(problem: Problem, solution: Solution, solver: str, tol: float) -> Solution:
    """Try the interior point where Newton did not converge; prefer a converged solution, then a lower one."""
    if not solution.converged and solver == "newton":
        other = _interior(problem, tol)
        solution = min(solution, other, key=lambda one: (not one.converged, one.objective))
    first = problem.features[:, 0]
    return solution if first[0] and (first == first[0]).all() else _or_zero(problem, solution, tol)


def _or_zero(problem: Problem, solution: Solution, tol: float) -> Solution:
    """Return the quantile regression, β = 0, where that is lower than the solution.

    Asked only where the first feature is not the constant. There m·γ may be negative wherever the loss is
    small: then no β > 0 lowers F, and the search over β > 0 ends at γ = 0, β = ∞. Where some β > 0 lowers F
    still further, that point is returned as not converged.
    """
    at_zero = _interior(problem.with_regularization(0.0), tol)
    beta = max(problem.best_beta(at_zero.coef), 0.0)
    objective = problem.objective(at_zero.coef, beta)
    if objective >= solution.objective:
        return solution
    found = replace(at_zero, beta=beta, objective=objective, regularization=problem.regularization)
    if beta > 0.0:
        gap = max(problem.gap(found.coef, beta, found.multipliers), 0.0)
        found = replace(found, gap=gap, converged=False)
    return found


def _judged(problem: Problem, solutions: list[Solution], tol: float) -> list[Solution]:
    """Return the solutions with ``converged`` decided by the gap relative to the pinball loss.

    The solvers' own criteria are also relative to F. With a huge λ they accept a gap that is large compared
    with the loss; where the loss is 0, they reject a gap that is rounding only.
    """
    if not solutions:
        return []
    rounding = _ROUNDING * float(np.abs(problem.scores).max())
    losses = problem.losses(np.array([solution.coef for solution in solutions]))
    return [
        replace(one, converged=one.gap <= rounding or (one.converged and one.gap <= tol * float(loss)))
        for one, loss in zip(solutions, losses, strict=True)
    ]
